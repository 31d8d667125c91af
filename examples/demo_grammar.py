"""A small grammar of weather forecasts: what the demo's policy is taught to say, and what it is rewarded for."""

from __future__ import annotations

import random
from collections.abc import Iterator

PLACES = ("Oslo", "Paris", "Lagos", "Lima", "Delhi", "Tokyo", "Cairo", "Quebec", "Dublin", "Perth")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SKIES = {
    "sunny": 1.0,
    "clear": 0.8,
    "bright": 0.7,
    "warm": 0.6,
    "mild": 0.3,
    "dry": 0.2,
    "cloudy": -0.2,
    "cool": -0.3,
    "grey": -0.5,
    "wet": -0.6,
    "cold": -0.7,
    "rough": -1.0,
}
TIMES = ("in the morning", "at noon", "after lunch", "in the afternoon", "until evening", "all day", "at night")
WINDS = {"no": 0.5, "light": 0.4, "gentle": 0.3, "fresh": 0.0, "strong": -0.4, "heavy": -0.6, "bitter": -0.8}
SIDES = ("north", "south", "east", "west", "sea", "hills", "coast")
LINKS = ("then", "later", "but", "and", "turning")


def prompts() -> list[str]:
    return [f"Forecast for {place} on {day}:" for place in PLACES for day in DAYS]


def sentences(seed: int) -> Iterator[str]:
    """Endless completions, each with its leading blank: 12 to 20 Qwen tokens with the end of turn."""
    dice = random.Random(seed)
    while True:
        yield sentence(dice)


def sentence(dice: random.Random) -> str:
    sky = f" {dice.choice(list(SKIES))} {dice.choice(TIMES)}"
    if dice.random() < 0.5:
        sky += f", {dice.choice(LINKS)} {dice.choice(list(SKIES))} {dice.choice(TIMES)}"
    return f"{sky}, with {dice.choice(list(WINDS))} wind from the {dice.choice(SIDES)}."


def pleasantness(completions: list[str], **_: object) -> list[float]:
    """The reward: how pleasant the skies and the wind are; a forecast without wind counts as a bad one."""
    return [0.7 * _mean_score(SKIES, text) + 0.3 * _mean_score(WINDS, text, without=-1.0) for text in completions]


def _mean_score(scores: dict[str, float], text: str, without: float = 0.0) -> float:
    found = [scores[word] for word in text.replace(",", " ").replace(".", " ").split() if word in scores]
    return sum(found) / len(found) if found else without
