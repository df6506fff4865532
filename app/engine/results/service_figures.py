"""The figures that a service is measured by, with their units: one list for specifications, runners and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# The unit of work of a service is one output token, of one that counts none a request: `time_s` is the time in which
# the service gives one, over all its requests, and `energy_j` what one costs. So a front, a chooser and a fit compare
# services as they compare kernels.
PERCENTILES: Final = (50, 95, 99)
LATENCIES: Final[Mapping[str, str]] = {
    "ttft": "time to the first token, from when the request was due",
    "tpot": "time per output token after the first",
    "e2e": "time to the end of the answer, from when the request was due",
}


def latency_figures(latency: str) -> tuple[str, ...]:
    """The names of what is stated of a latency: its mean and its percentiles, in s."""
    return (f"{latency}_mean_s", *(f"{latency}_p{value}_s" for value in PERCENTILES))


START: Final = "service_start_s"

# name -> (unit, what it is)
SERVICE_FIGURES: Final[Mapping[str, tuple[str, str]]] = {
    "requests_per_s": ("1/s", "requests that were answered in full"),
    "input_tokens_per_s": ("1/s", "tokens of their prompts"),
    "output_tokens_per_s": ("1/s", "tokens of the answers, counted as they arrive"),
    **{
        name: ("s", f"{text}, {name.split('_')[1]}")
        for latency, text in LATENCIES.items()
        for name in latency_figures(latency)
    },
    "energy_per_token_j": ("J", "what the boards drew, over the output tokens"),
    "energy_per_request_j": ("J", "what the boards drew, over the requests answered in full"),
    "idle_share": ("", "of the window, in which no request was under way; 0 to 1"),
    "requests": ("", "that ended within the window"),
    "errors": ("", "requests among them that failed"),
    "error_share": ("", "of the requests that ended; 0 to 1"),
    START: ("s", "until the server was ready, where it was started for this configuration"),
    "sent_late_p99_s": ("s", "how long after it was due a request was sent: of the load generator, not of the service"),
}
OF_ENERGY: Final = ("energy_per_token_j", "energy_per_request_j")
OF_EVERY_CLIENT: Final = (*OF_ENERGY, START)  # also of a program
OF_RESULTS: Final = ("total_tokens_per_s", "energy_per_total_token_j", "run_energy_j")  # of another tool, beside these
