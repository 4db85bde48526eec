"""Checking, canonical form, calling conventions and the pages of codes."""

import pickle

import margay
import pytest

BAD = """\
.version 8.0
.target sm_80
.address_size 64
.entry k() {
    .reg .f32 %f;
    .reg .u32 %r;
    add.f32 %f, %f, %r;
    ret;
}
"""


def test_a_right_module_has_no_findings(saxpy):
    found = margay.check(saxpy)
    assert found == [] and str(found) == "no findings"


def test_a_diagnostic_names_the_place():
    (only,) = margay.check(".version 7.0\n.target sm_50\n.entry k() { frobnicate; }", name="a.ptx")
    assert (only.severity, only.file, only.line, only.column) == ("error", "a.ptx", 3, 14)
    assert (only.end_line, only.end_column) == (3, 14 + len("frobnicate"))
    assert "`frobnicate`" in only.message and only.message in str(only)
    # The page of its code exists.
    assert margay.explain(only.code).startswith(f"# {only.code}")


def test_targets_and_versions_count_as_if_the_module_said_so(saxpy):
    # Manual, section 9.7.9.25: `cp.async` needs sm_80.
    text = saxpy.replace("    ret;\n}", "    cp.async.wait_all;\n    ret;\n}")
    assert margay.check(text).errors == []
    assert margay.check(text, target="sm_75").errors != []
    assert margay.check(text, target="75").errors != []
    with pytest.raises(ValueError, match="sm_80"):
        margay.check(text, target="pentium")
    with pytest.raises(ValueError, match="8.3"):
        margay.check(text, version="eight")


def test_paths_and_bytes_are_texts(saxpy, tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(BAD)
    (found,) = margay.check(path).errors
    assert found.file == str(path)
    # Images handed to a driver end in a zero byte.
    assert margay.check(saxpy.encode() + b"\0") == []
    with pytest.raises(TypeError, match="int"):
        margay.check(3)


def test_a_fix_makes_the_text_right():
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n    .reg .b32 %r;\n    mov.b32 %r, %tidd.x;\n    ret;\n}\n"
    fixable = [d for d in margay.check(text) if d.fix]
    for diagnostic in fixable:
        changed = diagnostic.fix.apply(text)
        assert changed != text
        edit = diagnostic.fix.edits[0]
        assert edit.replacement in changed.split("\n")[edit.line - 1]


def test_html_escapes_what_the_text_says():
    page = margay.check(".version 8.0\n.target sm_80\n<script>")._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_fmt_is_idempotent_and_refuses_what_is_no_ptx(saxpy):
    once = margay.fmt(saxpy)
    assert margay.fmt(once) == once
    assert margay.check(once) == []
    with pytest.raises(ValueError, match="cannot be formatted"):
        margay.fmt("this is { no PTX")


def test_abi_says_where_parameters_travel(saxpy):
    ptx = margay.abi(saxpy)
    (kernel,) = ptx.functions
    assert kernel["name"] == "saxpy"
    # CUDA's layout of (u32, f32, pointer, pointer): natural alignment.
    assert "16" in str(ptx) and "24 bytes of parameters" in str(ptx)
    assert ptx._repr_html_().startswith("<iframe") and "saxpy" in ptx.html
    with pytest.raises(ValueError, match="no ABI"):
        margay.abi(saxpy, "pascal")
    with pytest.raises(margay.CheckError):
        margay.abi(BAD)


def test_codes_have_pages():
    codes = margay.codes()
    assert {"error", "warning"} <= {code.severity for code in codes}
    for code in codes:
        assert code.code in margay.explain(code.code)
    with pytest.raises(LookupError, match="E9999"):
        margay.explain("E9999")


def test_errors_travel_between_processes():
    with pytest.raises(margay.CheckError) as caught:
        margay.Module(BAD)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.diagnostics == caught.value.diagnostics and again.diagnostics.errors
    assert isinstance(again, ValueError)
