// Options for printing programs for people, with defaults omitted.
#pragma once

#include "framework/op/op_registry.h"
#include "framework/text/printer.h"

namespace penstock {

// `ops` must outlive the options.
PrintOptions ShowOptions(const OpRegistry& ops);

}  // namespace penstock
