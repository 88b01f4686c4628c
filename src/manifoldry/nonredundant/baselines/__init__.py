"""Published methods against redundant coordinates, for comparison.

Two of them select among given coordinates, and can be no better than the best of those:
`select_by_regression` (Dsilva et al. 2018) and `select_independent` (Chen and Meilă 2019). The
other two compute one coordinate at a time and remove what it explains from the data before the
next: `sequential_regression`, whose points leave the manifold, and `advection` (Gerber et al.
2007), whose points move along the manifold and disconnect if it is closed.
"""

from manifoldry.nonredundant.baselines.selection import regression_errors as regression_errors
from manifoldry.nonredundant.baselines.selection import (
    select_by_regression as select_by_regression,
)
from manifoldry.nonredundant.baselines.selection import select_independent as select_independent
from manifoldry.nonredundant.baselines.sequential import (
    sequential_regression as sequential_regression,
)
from manifoldry.nonredundant.baselines.transport import Advection as Advection
from manifoldry.nonredundant.baselines.transport import advection as advection
