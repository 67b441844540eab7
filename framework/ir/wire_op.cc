// OpDesc and VarDesc to and from Op and Var.
#include "framework.pb.h"
#include "framework/ir/wire.h"
#include "framework/ir/wire_items.h"

namespace penstock {
namespace {

template <typename Message>
bool ParseMessage(std::string_view bytes, Message& message) {
  // Not ParseFromArray: it writes its own message to standard error when a required field is missing.
  return message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
         message.IsInitialized();
}

template <typename T, typename Range>
std::vector<T> ToVector(const Range& range) {
  return std::vector<T>(range.begin(), range.end());
}

Result<Attr> ToAttr(const proto::OpDesc::Attr& attr) {
  switch (attr.type()) {
    case proto::INT:
      return Attr(attr.i());
    case proto::FLOAT:
      return Attr(attr.f());
    case proto::STRING:
      return Attr(attr.s());
    case proto::INTS:
      return Attr(ToVector<std::int32_t>(attr.ints()));
    case proto::FLOATS:
      return Attr(ToVector<float>(attr.floats()));
    case proto::STRINGS:
      return Attr(ToVector<std::string>(attr.strings()));
    case proto::BOOLEAN:
      return Attr(attr.b());
    case proto::BOOLEANS:
      return Attr(ToVector<bool>(attr.bools()));
    case proto::BLOCK:
      return Attr(BlockRef{attr.block_idx()});
    case proto::LONG:
      return Attr(static_cast<std::int64_t>(attr.l()));
    case proto::BLOCKS: {
      std::vector<BlockRef> blocks;
      for (const std::int32_t index : attr.blocks_idx()) blocks.push_back({index});
      return Attr(std::move(blocks));
    }
    case proto::LONGS:
      return Attr(ToVector<std::int64_t>(attr.longs()));
  }
  return DataLoss("E-program-bytes", "attribute ", Quote(attr.name()), " has unknown kind ",
                  static_cast<int>(attr.type()));
}

struct AttrWriter {
  proto::OpDesc::Attr& out;
  void operator()(std::int32_t v) const { out.set_i(v); }
  void operator()(float v) const { out.set_f(v); }
  void operator()(const std::string& v) const { out.set_s(v); }
  void operator()(const std::vector<std::int32_t>& v) const { out.mutable_ints()->Add(v.begin(), v.end()); }
  void operator()(const std::vector<float>& v) const { out.mutable_floats()->Add(v.begin(), v.end()); }
  void operator()(const std::vector<std::string>& v) const {
    for (const std::string& s : v) out.add_strings(s);
  }
  void operator()(bool v) const { out.set_b(v); }
  void operator()(const std::vector<bool>& v) const {
    for (const bool b : v) out.add_bools(b);
  }
  void operator()(BlockRef v) const { out.set_block_idx(v.index); }
  void operator()(std::int64_t v) const { out.set_l(v); }
  void operator()(const std::vector<BlockRef>& v) const {
    for (const BlockRef b : v) out.add_blocks_idx(b.index);
  }
  void operator()(const std::vector<std::int64_t>& v) const {
    for (const std::int64_t l : v) out.add_longs(l);
  }
};

Result<TensorType> ToTensorType(const proto::VarType::TensorDesc& desc) {
  if (!IsDType(desc.data_type())) {
    return InvalidArgument("E-program-dtype", "element type ", static_cast<int>(desc.data_type()),
                           " is not an element type");
  }
  return TensorType{static_cast<DType>(desc.data_type()), Shape(ToVector<Dim>(desc.dims())), 0, false};
}

template <typename LodDesc>
Result<TensorType> ToLodType(const LodDesc& desc) {
  PENSTOCK_ASSIGN_OR_RETURN(TensorType type, ToTensorType(desc.tensor()));
  type.lod_level = desc.lod_level();
  type.has_lod_level = desc.has_lod_level();
  return type;
}

void WriteTensorDesc(const TensorType& type, proto::VarType::TensorDesc* desc) {
  desc->set_data_type(static_cast<proto::VarType::Type>(type.dtype));
  desc->mutable_dims()->Add(type.shape.dims().begin(), type.shape.dims().end());
}

template <typename LodDesc>
void WriteLodDesc(const TensorType& type, LodDesc* desc) {
  WriteTensorDesc(type, desc->mutable_tensor());
  if (type.has_lod_level || type.lod_level != 0) desc->set_lod_level(type.lod_level);
}

Status ReadVarType(const proto::VarType& type, Var& var) {
  if (static_cast<int>(type.type()) < static_cast<int>(VarKind::kTensor) || IsDType(type.type())) {
    return InvalidArgument("E-program-var-kind", "kind ", static_cast<int>(type.type()),
                           " is an element type");
  }
  var.kind = static_cast<VarKind>(type.type());
  if (type.has_lod_tensor()) {
    PENSTOCK_ASSIGN_OR_RETURN(var.type, ToLodType(type.lod_tensor()));
  } else if (type.has_selected_rows()) {
    PENSTOCK_ASSIGN_OR_RETURN(var.type, ToTensorType(type.selected_rows()));
  } else if (type.has_tensor_array()) {
    PENSTOCK_ASSIGN_OR_RETURN(var.type, ToLodType(type.tensor_array()));
  }
  for (const auto& part : type.reader().lod_tensor()) {
    PENSTOCK_ASSIGN_OR_RETURN(TensorType part_type, ToLodType(part));
    var.reader.push_back(std::move(part_type));
  }
  for (const int element : type.tuple().element_type()) var.tuple.push_back(static_cast<DType>(element));
  return OkStatus();
}

}  // namespace

Result<Op> ParseOp(std::string_view bytes) {
  proto::OpDesc desc;
  if (!ParseMessage(bytes, desc)) return DataLoss("E-program-bytes", "its bytes cannot be read");
  Op op(desc.type());
  for (const auto& slot : desc.inputs())
    op.AddInput(slot.parameter(), ToVector<std::string>(slot.arguments()));
  for (const auto& slot : desc.outputs())
    op.AddOutput(slot.parameter(), ToVector<std::string>(slot.arguments()));
  for (const auto& attr : desc.attrs()) {
    PENSTOCK_ASSIGN_OR_RETURN(Attr value, ToAttr(attr));
    op.Set(attr.name(), std::move(value));
  }
  if (desc.is_target()) op.SetTarget(true);
  op.set_wire_bytes(std::string(bytes));
  return op;
}

std::string SerializeOp(const Op& op) {
  if (!op.wire_bytes().empty()) return op.wire_bytes();
  proto::OpDesc desc;
  for (const Slot& slot : op.inputs()) {
    auto* out = desc.add_inputs();
    out->set_parameter(slot.name);
    for (const std::string& arg : slot.args) out->add_arguments(arg);
  }
  for (const Slot& slot : op.outputs()) {
    auto* out = desc.add_outputs();
    out->set_parameter(slot.name);
    for (const std::string& arg : slot.args) out->add_arguments(arg);
  }
  desc.set_type(op.type());
  for (const NamedAttr& attr : op.attrs()) {
    auto* out = desc.add_attrs();
    out->set_name(attr.name);
    out->set_type(static_cast<proto::AttrType>(KindOf(attr.value)));
    std::visit(AttrWriter{*out}, attr.value);
  }
  if (op.is_target()) desc.set_is_target(true);
  return desc.SerializeAsString();
}

Result<Var> ParseVar(std::string_view bytes) {
  proto::VarDesc desc;
  if (!ParseMessage(bytes, desc)) return DataLoss("E-program-bytes", "its bytes cannot be read");
  Var var;
  var.name = desc.name();
  if (Status status = ReadVarType(desc.type(), var); !status.ok())
    return std::move(status).In(Quote(var.name));
  var.persistable = desc.persistable();
  var.has_persistable = desc.has_persistable();
  var.need_check_feed = desc.need_check_feed();
  var.has_need_check_feed = desc.has_need_check_feed();
  var.wire_bytes = std::string(bytes);
  return var;
}

std::string SerializeVar(const Var& var) {
  if (!var.wire_bytes.empty()) return var.wire_bytes;
  proto::VarDesc desc;
  desc.set_name(var.name);
  proto::VarType* type = desc.mutable_type();
  type->set_type(static_cast<proto::VarType::Type>(var.kind));
  if (var.type) {
    if (var.kind == VarKind::kSelectedRows) {
      WriteTensorDesc(*var.type, type->mutable_selected_rows());
    } else if (var.kind == VarKind::kTensorArray) {
      WriteLodDesc(*var.type, type->mutable_tensor_array());
    } else {
      WriteLodDesc(*var.type, type->mutable_lod_tensor());
    }
  }
  for (const TensorType& part : var.reader) WriteLodDesc(part, type->mutable_reader()->add_lod_tensor());
  for (const DType element : var.tuple) {
    type->mutable_tuple()->add_element_type(static_cast<proto::VarType::Type>(element));
  }
  if (var.has_persistable || var.persistable) desc.set_persistable(var.persistable);
  if (var.has_need_check_feed || var.need_check_feed) desc.set_need_check_feed(var.need_check_feed);
  return desc.SerializeAsString();
}

}  // namespace penstock
