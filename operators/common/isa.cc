#include "operators/common/isa.h"

#include <dnnl.hpp>

#include "framework/vector/isa.h"

namespace penstock {

void CapIsaOfKernels() {
  vec::CapIsaBySetting();
  switch (vec::IsaInUse()) {
    case vec::Isa::kBase:
    case vec::Isa::kSse4:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      return;
    case vec::Isa::kAvx2:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      return;
    case vec::Isa::kAvx512:
      return;  // with its extensions
  }
}

}  // namespace penstock
