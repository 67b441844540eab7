"""Training in mixed precision: OptimizerWithMixedPrecision and decorate."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.ir.framework import default_main_program as default_main_program
    from penstock._src.ir.framework import default_startup_program as default_startup_program
    from penstock._src.mixed_precision.decorator import OptimizerWithMixedPrecision as OptimizerWithMixedPrecision
    from penstock._src.mixed_precision.decorator import decorate
    from penstock._src.mixed_precision.fp16_lists import AutoMixedPrecisionLists as AutoMixedPrecisionLists
    from penstock._src.mixed_precision.fp16_utils import rewrite_program as rewrite_program
    from penstock._src.mixed_precision.fp16_utils import update_loss_scaling as update_loss_scaling
    from penstock._src.mixed_precision.fp16_utils import update_role_var_grad as update_role_var_grad

__all__ = ['decorate']

facade.make(__name__)
