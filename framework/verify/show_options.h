// How programs are printed for people: without what the schemas' defaults say anyway.
#pragma once

#include "framework/op/op_registry.h"
#include "framework/text/printer.h"

namespace penstock {

// `ops` must outlive the options.
PrintOptions ShowOptions(const OpRegistry& ops);

}  // namespace penstock
