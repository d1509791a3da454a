# The controller's image: kerf and its locked packages, as uid 65532, on a read-only root. PYTHON names what it is built on:
# an image with Python 3.11 or newer as `python`, with venv.
ARG PYTHON=python:3.13-slim
FROM ${PYTHON} AS build
WORKDIR /src
COPY requirements/requirements.txt requirements/
RUN python -m venv /kerf \
    && /kerf/bin/pip install --no-cache-dir --require-hashes -r requirements/requirements.txt
COPY . .
# The houses are linked into kerf/; the wheel holds them as files.
RUN /kerf/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON}
COPY --from=build /kerf /kerf
ENV PATH=/kerf/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["kerf"]
CMD ["run"]
