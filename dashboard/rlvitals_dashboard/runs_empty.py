"""What stands in place of the table: how to attach the first run, trainer by trainer, or that no run fits."""

from __future__ import annotations

from dash import html

from rlvitals_dashboard.api import Visitor, visitor
from rlvitals_dashboard.components import Component, aria
from rlvitals_dashboard.language import phrase, t, woven

TRL = """import rlvitals

trainer = GRPOTrainer(...)
rlvitals.attach(trainer, project="my-project")   # the one line
trainer.train()"""
VERL = """# verl 0.9 and later: nothing to add
python -m verl.trainer.main_ppo ...

# verl 0.6 to 0.8
export VERL_USE_EXTERNAL_MODULES=rlvitals.integrations.verl"""
OPENRLHF = """python -m rlvitals.integrations.openrlhf.launch \\
  -m openrlhf.cli.train_ppo_ray ...   # all your arguments stay"""
SLIME = """python train.py ... \\
  --custom-rollout-log-function-path rlvitals.integrations.slime.log_rollout"""
LOOP = """import rlvitals

with rlvitals.run(project="my-project", model=policy, optimizer=optimizer, tokenizer=tokenizer) as vitals:
    ...
    vitals.step(step, lr=lr)   # in each step"""

TRAINERS = {
    "TRL": (TRL, phrase("One line before training.")),
    "verl": (VERL, phrase("verl loads it by itself; older releases take one variable.")),
    "OpenRLHF": (OPENRLHF, phrase("The launcher stands before the module that you start anyway.")),
    "slime": (SLIME, phrase("One flag shows the run; four more show and steer the rest.")),
    "loop": (LOOP, phrase("A loop of your own takes one block.")),
}
"""What to write by trainer, and one line about it."""


def empty_runs() -> Component:
    """Both are in the page; the browser shows the one that holds."""
    return html.Div([_first_run(), _unfit()], id="runs-empty")


def _unfit() -> Component:
    clear = html.Button(t("Clear the filters"), className="button primary runs-clear")
    words = html.P(t("There are runs, but none of them fits what is looked for."))
    return html.Div([html.H2(t("No run fits")), words, clear], className="empty unfit", hidden=True)


def _first_run() -> Component:
    words = t("Attach your trainer with one line, and its vital signs appear here as it trains.")
    return html.Div(
        [
            html.H2(t("No run yet")),
            html.P(words),
            html.Div(
                [_tab(name) for name in TRAINERS], role="tablist", className="tabs", **aria(label=t("Trainer"))
            ),
            *(_panel(name, *told) for name, told in TRAINERS.items()),
            html.P(t("On another machine than the service, set these first:")),
            html.Pre(html.Code(settings(visitor.get() or Visitor())), className="code", tabIndex=0),
            html.P(
                woven(
                    "On this machine the client finds the service by itself. {doctor} in the job's environment "
                    "says whether a run there would be seen, and if not, why. This page fills by itself.",
                    doctor=html.Code("rlvitals doctor"),
                )
            ),
        ],
        className="empty first-run",
        hidden=True,
    )


def settings(who: Visitor) -> str:
    """Under the address by which the visitor came; the token's line is to be run where the service is."""
    host = "".join(c for c in who.host if c.isalnum() or c in ".:-[]_")
    return (
        f"export RLVITALS_URL={who.scheme}://{host}\n"
        "export RLVITALS_TOKEN=...   # from: rlvitals token create my-trainer --scope ingest"
    )


def _tab(name: str) -> Component:
    first = name == next(iter(TRAINERS))
    label = t("Your own loop") if name == "loop" else name
    return html.Button(
        label,
        id=f"attach-{name}",
        role="tab",
        className="button",
        tabIndex=0 if first else -1,
        **aria(selected="true" if first else "false", controls=f"attach-{name}-how"),
    )


def _panel(name: str, code: str, words: str) -> Component:
    first = name == next(iter(TRAINERS))
    body = [html.P(t(words)), html.Pre(html.Code(code), className="code", tabIndex=0)]
    return html.Div(
        body, id=f"attach-{name}-how", role="tabpanel", hidden=not first, **aria(labelledby=f"attach-{name}")
    )
