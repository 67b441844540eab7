// Converts OpDesc and VarDesc to and from Op and Var.
#include "framework.pb.h"
#include "framework/wire/items.h"
#include "framework/wire/plain.h"
#include "framework/wire/wire.h"

namespace penstock {
namespace {

template <typename Message>
bool ParseMessage(std::string_view bytes, Message& message) {
  // ParseFromArray would print its own message to standard error if a required field is missing.
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

// Why an OpDesc that lacks required fields cannot be read: a kind of attribute that is not in the enumeration
// reads as absent.
Status WhyUnreadable(const proto::OpDesc& desc) {
  for (const auto& attr : desc.attrs()) {
    const auto& unknown = attr.GetReflection()->GetUnknownFields(attr);
    for (int i = 0; i < unknown.field_count(); ++i) {
      if (unknown.field(i).number() != proto::OpDesc::Attr::kTypeFieldNumber) continue;
      return Unimplemented("E-program-attr", "attribute ", Quote(attr.name()), " of op ", Quote(desc.type()),
                           " has a kind (", unknown.field(i).varint(), ") that Fluid 1.8 does not have");
    }
  }
  return DataLoss("E-program-bytes", "its bytes cannot be read");
}

Result<Op> ParseOpByProtobuf(std::string_view bytes) {
  proto::OpDesc desc;
  if (!ParseMessage(bytes, desc)) return WhyUnreadable(desc);
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
  return op;
}

Result<Var> ParseVarByProtobuf(std::string_view bytes) {
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
  return var;
}

}  // namespace

Result<std::shared_ptr<Op>> ParseOp(std::string_view bytes) {
  auto op = std::make_shared<Op>();
  if (ReadPlainOp(bytes, *op)) return op;
  PENSTOCK_ASSIGN_OR_RETURN(*op, ParseOpByProtobuf(bytes));
  op->set_wire_bytes(bytes);
  return op;
}

std::string SerializeOp(const Op& op) {
  if (!op.wire_bytes().empty()) return op.wire_bytes();
  std::string bytes;
  AppendOpFields(op, bytes);
  return bytes;
}

Result<std::shared_ptr<Var>> ParseVar(std::string_view bytes) {
  auto var = std::make_shared<Var>();
  if (ReadPlainVar(bytes, *var)) return var;
  PENSTOCK_ASSIGN_OR_RETURN(*var, ParseVarByProtobuf(bytes));
  var->wire_bytes = Word::Rare(bytes);
  return var;
}

std::string SerializeVar(const Var& var) {
  if (!var.wire_bytes.empty()) return var.wire_bytes;
  std::string bytes;
  AppendVarFields(var, bytes);
  return bytes;
}

}  // namespace penstock
