"""Checks before the first step: tokenizer, template, model, data and settings, each with evidence and a fix."""
