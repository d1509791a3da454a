# The controller's image: kerf and the packages that it needs to run, as uid 65532, on a read-only root. PYTHON names what it
# is built on, by digest: an image with Python 3.11 or newer as `python`, with pip and venv. docs/install.md says how to renew it.
ARG PYTHON=python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
FROM ${PYTHON} AS wheel
WORKDIR /src
COPY requirements/build.txt requirements/
RUN python -m pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY . .
# The houses are linked into kerf/; the wheel holds them as files.
RUN python -m hatchling build -t wheel -d /wheel

FROM ${PYTHON} AS build
COPY requirements/production.txt /
COPY --from=wheel /wheel /wheel
# Without pip: nothing is installed later.
RUN python -m venv --without-pip /kerf \
    && python -m pip --python /kerf/bin/python install --no-cache-dir --require-hashes -r production.txt \
    && python -m pip --python /kerf/bin/python install --no-cache-dir --no-deps --no-index /wheel/*.whl

FROM ${PYTHON}
COPY --from=build /kerf /kerf
ENV PATH=/kerf/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["kerf"]
CMD ["run"]
