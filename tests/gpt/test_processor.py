from pathlib import Path

import pytest

from gpt.inference.processor import is_intel


@pytest.mark.parametrize(("vendor", "intel"), [("GenuineIntel", True), ("AuthenticAMD", False)])
def test_the_maker_is_read_where_linux_writes_it_and_else_asked_of_python(monkeypatch, vendor, intel):
    monkeypatch.setattr(Path, "read_text", lambda path: f"vendor_id : {vendor}")
    assert is_intel.__wrapped__() is intel

    def no_such_file(path):
        raise OSError

    monkeypatch.setattr(Path, "read_text", no_such_file)
    monkeypatch.setattr("platform.processor", lambda: f"Family 6, {vendor}")
    assert is_intel.__wrapped__() is intel
