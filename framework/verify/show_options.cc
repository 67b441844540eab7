#include "framework/verify/show_options.h"

namespace penstock {

PrintOptions ShowOptions(const OpRegistry& ops) {
  PrintOptions options;
  options.is_default = [&ops](const Op& op, const NamedAttr& attr) {
    const OpDef* def = ops.Find(op.type());
    const AttrDef* schema = def == nullptr ? nullptr : def->FindAttr(attr.name);
    return schema != nullptr && schema->default_value == attr.value;
  };
  return options;
}

}  // namespace penstock
