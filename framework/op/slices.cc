#include "framework/op/slices.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace penstock {
namespace {

// Selected rows become others, or a tensor, each row by itself.
constexpr std::string_view kOfSelectedRows[] = {"merge_selected_rows", "get_tensor_from_selected_rows"};

bool AddsUpAllElements(const Op& op) {
  return op.type() == "reduce_sum" && op.GetOr<bool>("reduce_all", false);
}

}  // namespace

OnSlices WhatOnSlices(const OpRegistry& ops, const Op& op) {
  if (AddsUpAllElements(op)) return OnSlices::kAddsUp;
  const bool rows = std::find(std::begin(kOfSelectedRows), std::end(kOfSelectedRows), op.type()) !=
                    std::end(kOfSelectedRows);
  const OpDef* def = ops.Find(op.type());
  return rows || (def != nullptr && def->elementwise()) ? OnSlices::kByRows : OnSlices::kNeedsWhole;
}

}  // namespace penstock
