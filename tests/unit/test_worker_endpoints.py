"""Which providers a worker may call, from its own environment: where, with which model, as whom."""

import pytest

from libs.runtime.errors import SettingsWrong
from services.worker.endpoints import endpoints

KEYS = {"OPENAI_API_KEY": "k-1", "GEMINI_API_KEY": "k-2", "DEEPSEEK_API_KEY": "k-3"}


def test_nobodys_key_is_used_unasked() -> None:
    assert endpoints((), KEYS) == {}


def test_they_come_in_the_order_of_preference() -> None:
    assert list(endpoints(("deepseek", "ollama", "openai"), KEYS)) == ["deepseek", "ollama", "openai"]


@pytest.mark.parametrize("name", ["ollama", "gemini", "openai", "deepseek"])
def test_the_four_need_no_address_and_no_model(name: str) -> None:
    found = endpoints((name,), KEYS)[name]

    assert found.url.startswith("http")
    assert found.model
    assert found.key == KEYS.get(f"{name.upper()}_API_KEY")


def test_what_is_set_counts() -> None:
    told = {**KEYS, "OPENAI_BASE_URL": "http://proxy:8080/v1/", "OPENAI_MODEL": "mine"}

    found = endpoints(("openai",), told)["openai"]

    assert (found.url, found.model, found.key) == ("http://proxy:8080/v1", "mine", "k-1")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("gpu-1", "http://gpu-1:11434/v1"),
        ("gpu-1:8000", "http://gpu-1:8000/v1"),
        ("http://gpu-1:8000/", "http://gpu-1:8000/v1"),
        ("https://gpu.test", "https://gpu.test/v1"),
        ("", "http://127.0.0.1:11434/v1"),
    ],
)
def test_ollamas_host_is_read_as_its_own_programs_do(host: str, url: str) -> None:
    assert endpoints(("ollama",), {"OLLAMA_HOST": host})["ollama"].url == url


def test_any_other_name_says_where_and_which_model() -> None:
    told = {"MY_LLM_API_KEY": "k", "MY_LLM_BASE_URL": "https://llm.test/v1", "MY_LLM_MODEL": "m"}

    assert endpoints(("my_llm",), told)["my_llm"].model == "m"


@pytest.mark.parametrize(
    ("names", "told", "said"),
    [
        (("openai",), {}, "HEADGATE_PROVIDERS names openai, and OPENAI_API_KEY is not set"),
        (("openai",), {**KEYS, "OPENAI_BASE_URL": "proxy"}, "OPENAI_BASE_URL is no http:// or https:// address"),
        (("mine",), {"MINE_API_KEY": "k", "MINE_BASE_URL": "https://x"}, "MINE_MODEL is not set"),
    ],
)
def test_what_is_missing_is_said_by_its_name(names: tuple[str, ...], told: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsWrong) as wrong:
        endpoints(names, told)

    assert said in str(wrong.value)


def test_all_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(SettingsWrong) as wrong:
        endpoints(("openai", "mine"), {})

    assert len(wrong.value.problems) == 4


def test_a_key_is_in_no_representation() -> None:
    found = endpoints(("openai",), {"OPENAI_API_KEY": "sk-never-to-be-seen"})

    assert "never-to-be-seen" not in repr(found) + str(found)
