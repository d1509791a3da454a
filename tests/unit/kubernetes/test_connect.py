"""What is said where there is no usable kubeconfig (KERF603)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.kubernetes.errors import NoCluster
from kerf.adapters.kubernetes.session import connect

NOT_ONE = {
    "words": b"root:x:0:0:root:/root:/bin/bash\n",
    "documents": b"a: 1\n---\nb: 2\n",
    "no YAML": b"a: [1\n",
    "bytes": b"\x7fELF\xd0\xff",
    "list": b"[1, 2]\n",
    "empty": b"",
}


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("content", NOT_ONE.values(), ids=NOT_ONE)
async def test_a_file_that_is_no_kubeconfig(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config"
    file.write_bytes(content)
    with pytest.raises(NoCluster, match=r"^KERF603: .*Name a kubeconfig") as refused:
        await connect(file)
    assert refused.value.where == str(file)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_file_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoCluster, match="there is no such file"):
        await connect(tmp_path / "nowhere")
    assert capfd.readouterr() == ("", "")  # the client would have said something of its own


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("context", [None, "prod"])
async def test_no_kubeconfig_at_all(
    context: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(NoCluster, match=r"there is no such file \[~/\.kube/config\]"):
        await connect(None, context)
    assert caplog.records == []


@pytest.mark.asyncio(loop_scope="function")
async def test_an_unknown_context_is_refused_with_those_that_are_there(tmp_path: Path) -> None:
    file = tmp_path / "config"
    contexts = ", ".join(f"{{name: {name}, context: {{cluster: c, user: u}}}}" for name in ("prod", "dev"))
    rest = "clusters: [{name: c, cluster: {server: 'http://localhost'}}], users: [{name: u, user: {}}]"
    file.write_text(f"{{apiVersion: v1, kind: Config, current-context: dev, contexts: [{contexts}], {rest}}}")
    with pytest.raises(NoCluster, match=r"there is no context prd\. There is dev, prod "):
        await connect(file, "prd")


@pytest.mark.asyncio(loop_scope="function")
async def test_one_of_several_files_is_enough(tmp_path: Path) -> None:
    """As KUBECONFIG names them."""
    (tmp_path / "there").write_text("apiVersion: v1\nkind: Config\n")
    with pytest.raises(NoCluster) as refused:
        await connect(Path(f"{tmp_path / 'nowhere'}:{tmp_path / 'there'}"))
    assert "no such file" not in str(refused.value)
