#include "executor/process/wire_name.h"

#include "framework/base/strings.h"

namespace penstock::process {

Result<WireName> WireNamed(const std::string& name) {
  if (name.empty() || name == "native") return WireName::kNative;
  if (name == "fluid") return WireName::kFluid;
  return InvalidArgument("E-wire-name", "wire is \"native\" or \"fluid\", not ", Quote(name));
}

}  // namespace penstock::process
