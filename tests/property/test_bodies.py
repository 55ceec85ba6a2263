"""The digest of a body does not depend on the pieces it comes in, nor on the boundary of a form."""

from hypothesis import given
from hypothesis import strategies as st

from effectonce.http.bodies import Digest, boundary_of, without_boundary

TEXTS = st.lists(st.binary(max_size=12), min_size=1, max_size=6)
BOUNDARIES = st.sampled_from([b"ab", b"----x1", b"z", b"aab"])


def digest(body: bytes, boundary: bytes, cuts: list[int]) -> bytes:
    made, at = Digest(boundary), 0
    for cut in [*sorted(cut % (len(body) + 1) for cut in cuts), len(body)]:
        made.add(body[at:cut])
        at = cut
    return made.end()


@given(parts=TEXTS, boundary=BOUNDARIES, cuts=st.lists(st.integers(0, 200), max_size=6))
def test_the_pieces_make_no_difference(parts: list[bytes], boundary: bytes, cuts: list[int]) -> None:
    body = boundary.join(parts)
    assert digest(body, boundary, cuts) == digest(body, boundary, [])


@given(
    parts=st.lists(st.text("0123 \r\n", max_size=8).map(str.encode), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 200), max_size=4),
)
def test_the_boundary_makes_no_difference(parts: list[bytes], cuts: list[int]) -> None:
    assert digest(b"first".join(parts), b"first", cuts) == digest(b"another".join(parts), b"another", [])


@given(one=TEXTS, other=TEXTS)
def test_without_a_boundary_another_body_has_another_digest(one: list[bytes], other: list[bytes]) -> None:
    same = b"".join(one) == b"".join(other)
    assert (digest(b"".join(one), b"", []) == digest(b"".join(other), b"", [])) is same


def test_the_boundary_is_read_in_both_ways_of_writing() -> None:
    for written in ('multipart/form-data; boundary="a b"; charset=utf-8', "multipart/form-data; BOUNDARY=ab"):
        assert boundary_of(written) in {"a b", "ab"}
        assert "oundary" not in without_boundary(written)
    assert (boundary_of("text/plain"), without_boundary("text/plain")) == ("", "text/plain")
