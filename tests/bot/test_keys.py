"""What is derived from the secret key, and where that comes from."""

import stat

import pytest

from bot import keys
from bot.keys import KeyRing
from service.errors import ServiceError, StartRefused

OLD, NEW = "old" * 20, "new" * 20


def test_the_digest_of_a_token_depends_on_the_secret_key_and_the_token():
    ring = KeyRing(NEW)
    assert ring.token_digest("t") == KeyRing(NEW).token_digest("t")
    assert ring.token_digest("t") != ring.token_digest("u")
    assert ring.token_digest("t") != KeyRing(OLD).token_digest("t")
    assert len(ring.token_digest("t")) == 32


def test_no_key_serves_two_purposes():
    labels = (keys.TOKENS, keys.PAGES, keys.FORMS, keys.SEALED)
    assert len({keys.derived(NEW, label) for label in labels}) == len(labels)


def test_a_page_token_of_either_key_is_known_and_a_new_one_takes_the_present():
    before, now = KeyRing(OLD), KeyRing(NEW, OLD)
    assert now.page_tags(b"x") == (now.page_tag(b"x"), before.page_tag(b"x"))
    assert before.page_tag(b"x") not in KeyRing(NEW).page_tags(b"x")
    assert now.page_tag(b"x") != now.page_tag(b"y")
    assert len(now.page_tag(b"x")) == 16


def test_a_sealed_secret_is_opened_by_the_key_that_sealed_it_also_when_it_is_the_previous():
    sealed = KeyRing(OLD).sealed("whsec_ü")
    assert KeyRing(OLD).opened(sealed) == KeyRing(NEW, OLD).opened(sealed) == "whsec_ü"
    assert "whsec" not in repr(sealed)
    assert sealed != KeyRing(OLD).sealed("whsec_ü")


@pytest.mark.parametrize("harm", ["cut", "changed", "empty", "another key"])
def test_a_sealed_secret_that_is_not_ours_says_what_to_do(harm):
    sealed = KeyRing(OLD).sealed("whsec_x")
    bytes_of = {
        "cut": sealed[:5],
        "changed": sealed[:-1] + bytes([sealed[-1] ^ 1]),
        "empty": b"",
        "another key": KeyRing("third" * 20).sealed("whsec_x"),
    }
    with pytest.raises(ServiceError, match="HEADGATE_SECRET_KEY_PREVIOUS"):
        KeyRing(NEW, OLD).opened(bytes_of[harm])


def test_what_was_sealed_survives_a_release():
    # Written down once, by AES-256-GCM: a change of label or form would lose every secret.
    kept = bytes.fromhex("66b9a52e60c28a2ff202d0ad832e77c5668ba32683c39d5bd35a68fa2b09431c8004f5")
    assert KeyRing("k" * 43).opened(kept) == "whsec_x"


def test_the_stored_digests_survive_a_release():
    # Written down once: a change of label or derivation would void every token in use.
    assert KeyRing("k" * 43).token_digest("hgt_x").hex() == (
        "ce18890b6445246298ccc22f34e6fda084d88f7eabec3ef50a4d0ff78ecf5251"
    )


def test_while_rotating_tokens_of_both_keys_are_known_and_new_ones_take_the_present():
    before, now = KeyRing(OLD), KeyRing(NEW, OLD)
    assert before.token_digest("t") in now.token_digests("t")
    assert now.token_digests("t")[0] == now.token_digest("t") == KeyRing(NEW).token_digest("t")
    assert before.token_digest("t") not in KeyRing(NEW).token_digests("t")


def test_a_data_directory_makes_its_key_once_and_keeps_it_to_itself(tmp_path):
    data_dir = tmp_path / "deep" / "data"
    first = keys.secret_key_in(data_dir)
    assert keys.secret_key_in(data_dir) == first
    assert len(first) >= 43
    assert stat.S_IMODE((data_dir / keys.KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in data_dir.iterdir()] == [keys.KEY_FILE]


def test_of_two_that_make_the_key_at_once_the_first_one_wins(tmp_path):
    path = tmp_path / keys.KEY_FILE
    assert keys.place_secret(path, "first")
    assert not keys.place_secret(path, "second")
    assert path.read_text() == "first"
    assert [each.name for each in tmp_path.iterdir()] == [keys.KEY_FILE]


@pytest.mark.parametrize(
    ("mode", "text", "refusal"),
    [(0o644, "k" * 43, "others may read it"), (0o600, "", "holds no key")],
)
def test_a_key_file_that_is_open_or_empty_refuses_the_start(tmp_path, mode, text, refusal):
    path = tmp_path / keys.KEY_FILE
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(StartRefused, match=f"HEADGATE_SECRET_KEY: .*{refusal}"):
        keys.secret_key_in(tmp_path)


def test_a_data_directory_that_cannot_be_made_refuses_the_start(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StartRefused, match="HEADGATE_DATA_DIR that can be written"):
        keys.secret_key_in(tmp_path / "file")
