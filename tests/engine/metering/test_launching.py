"""What a board that launches no kernels says, and that a real one can be swept where setting it is allowed."""

from __future__ import annotations

import pytest

from app.base.errors import WattridgeError
from app.engine.metering.launching import require_launching


def test_sensors_of_a_real_board_alone_say_how_its_clocks_are_swept() -> None:
    from fixtures.cuda_bench import SteadySensors

    with pytest.raises(WattridgeError, match="launch no kernels") as error:
        require_launching(SteadySensors())  # type: ignore[arg-type]
    assert "wattridge fit --gpu N --allow-control" in error.value.remedy
