#include "framework/ir/wire.h"

#include <google/protobuf/io/coded_stream.h>

#include <functional>

#include "extra.pb.h"
#include "framework.pb.h"
#include "framework/ir/wire_items.h"
#include "framework/ir/wire_plain.h"

namespace penstock {
namespace {

using google::protobuf::io::CodedInputStream;

// Tags: field number and wire type of the two outer messages, which are read by hand to keep the bytes of
// each item.
constexpr std::uint32_t kLengthDelimited = 2;
constexpr int kProgramBlocks = 1, kProgramCompatibility = 3, kProgramVersion = 4, kProgramExtra = 1000;
constexpr int kBlockIndex = 1, kBlockParent = 2, kBlockVars = 3, kBlockOps = 4, kBlockForward = 5;

struct Field {
  int number;
  std::uint32_t wire_type;
  std::uint64_t varint;    // wire type 0
  std::string_view bytes;  // wire type 2
  std::string_view whole;  // with tag and length
};

Status Truncated(std::string_view what, std::size_t at) {
  return DataLoss("E-program-bytes", what, ": the bytes end or make no sense at byte ", at);
}

// Calls `visit` with each field of a message.
Status ForEachField(std::string_view message, std::string_view what,
                    const std::function<Status(const Field&)>& visit) {
  if (message.size() > static_cast<std::size_t>(INT32_MAX)) {
    return InvalidArgument("E-program-bytes", what, " is larger than 2 GiB");
  }
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  while (true) {
    const int begin = in.CurrentPosition();
    if (begin == static_cast<int>(message.size())) return OkStatus();
    const std::uint32_t tag = in.ReadTag();
    Field field{static_cast<int>(tag >> 3), tag & 7, 0, {}, {}};
    if (field.number == 0) return Truncated(what, static_cast<std::size_t>(begin));
    std::uint64_t skip = 0;
    bool ok = true;
    if (field.wire_type == 0) {
      ok = in.ReadVarint64(&field.varint);
    } else if (field.wire_type == kLengthDelimited) {
      ok = in.ReadVarint64(&skip);
    } else if (field.wire_type == 1) {
      skip = 8;
    } else if (field.wire_type == 5) {
      skip = 4;
    } else {
      ok = false;
    }
    const auto at = static_cast<std::size_t>(in.CurrentPosition());
    if (!ok || skip > message.size() - at || !in.Skip(static_cast<int>(skip))) {
      return Truncated(what, static_cast<std::size_t>(begin));
    }
    field.bytes = message.substr(at, skip);
    field.whole = message.substr(static_cast<std::size_t>(begin),
                                 static_cast<std::size_t>(in.CurrentPosition() - begin));
    PENSTOCK_RETURN_IF_ERROR(visit(field));
  }
}

Status WrongWireType(std::string_view what, const Field& field) {
  return DataLoss("E-program-bytes", what, ": field ", field.number, " has wire type ", field.wire_type);
}

// Without the message that protobuf writes to standard error when a required field is missing.
bool ParseQuietly(std::string_view bytes, google::protobuf::MessageLite& message) {
  return message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
         message.IsInitialized();
}

// The parts of one BlockDesc.
struct RawBlock {
  std::int32_t index = -1;
  std::int32_t parent = -1;
  std::optional<std::int32_t> forward;
  std::vector<std::string_view> vars;
  std::vector<std::string_view> ops;
};

Result<RawBlock> ReadRawBlock(std::string_view bytes, int position) {
  RawBlock raw;
  bool has_index = false, has_parent = false;
  const std::string what = StrCat("block ", position);
  PENSTOCK_RETURN_IF_ERROR(ForEachField(bytes, what, [&](const Field& field) -> Status {
    const bool is_item = field.number == kBlockVars || field.number == kBlockOps;
    const bool is_number =
        field.number == kBlockIndex || field.number == kBlockParent || field.number == kBlockForward;
    if ((is_item && field.wire_type != kLengthDelimited) || (is_number && field.wire_type != 0)) {
      return WrongWireType(what, field);
    }
    const auto number = static_cast<std::int32_t>(field.varint);
    if (field.number == kBlockIndex) {
      raw.index = number;
      has_index = true;
    } else if (field.number == kBlockParent) {
      raw.parent = number;
      has_parent = true;
    } else if (field.number == kBlockForward) {
      raw.forward = number;
    } else if (field.number == kBlockVars) {
      raw.vars.push_back(field.bytes);
    } else if (field.number == kBlockOps) {
      raw.ops.push_back(field.bytes);
    }
    return OkStatus();
  }));
  if (!has_index || !has_parent)
    return InvalidArgument("E-program-block", what, " has no idx or no parent_idx");
  if (raw.index != position) {
    return InvalidArgument("E-program-block", "block at position ", position, " says it is block ",
                           raw.index);
  }
  if (raw.parent < -1 || raw.parent >= position) {
    return InvalidArgument("E-program-block", "block ", position, " has parent ", raw.parent,
                           "; a parent comes before its block");
  }
  return raw;
}

Status FillBlock(const RawBlock& raw, const proto::BlockExtra& extra, Block& block) {
  if (raw.forward) block.set_forward_block(*raw.forward);
  for (std::size_t i = 0; i < raw.vars.size(); ++i) {
    auto var = ParseVar(raw.vars[i]);
    if (!var.ok()) return std::move(var).status().In(StrCat("variable ", i, " of block ", raw.index));
    if (block.FindVar(var->name) != nullptr) {
      return InvalidArgument("E-program-var-twice", "block ", raw.index, " declares ", Quote(var->name),
                             " twice");
    }
    block.SetVar(*std::move(var));
  }
  PENSTOCK_RETURN_IF_ERROR(ApplyVarFacts(extra, block));
  std::vector<Op> ops;
  ops.reserve(raw.ops.size());
  for (std::size_t i = 0; i < raw.ops.size(); ++i) {
    auto op = ParseOp(raw.ops[i]);
    if (!op.ok()) return std::move(op).status().In(StrCat("op ", i, " of block ", raw.index));
    ops.push_back(*std::move(op));
  }
  PENSTOCK_RETURN_IF_ERROR(ApplyOpFacts(extra, raw.index, ops));
  for (Op& op : ops) block.Append(std::move(op));
  return OkStatus();
}

struct RawProgram {
  std::vector<std::string_view> blocks;
  std::string_view extra;
  ProgramMeta meta;
};

Result<RawProgram> ReadRawProgram(std::string_view bytes) {
  RawProgram raw;
  PENSTOCK_RETURN_IF_ERROR(ForEachField(bytes, "program", [&](const Field& field) -> Status {
    const bool known = field.number == kProgramBlocks || field.number == kProgramCompatibility ||
                       field.number == kProgramVersion || field.number == kProgramExtra;
    if (known && field.wire_type != kLengthDelimited) return WrongWireType("program", field);
    if (field.number == kProgramBlocks) {
      raw.blocks.push_back(field.bytes);
    } else if (field.number == kProgramExtra) {
      raw.extra = field.bytes;
    } else if (field.number == kProgramCompatibility) {
      proto::OpCompatibleMap map;
      if (!ParseQuietly(field.bytes, map)) {
        return DataLoss("E-program-bytes", "program: op_compatible_map cannot be read");
      }
      raw.meta.op_compatible_map = std::string(field.bytes);
    } else if (field.number == kProgramVersion) {
      proto::Version version;
      if (!ParseQuietly(field.bytes, version)) {
        return DataLoss("E-program-bytes", "program: version cannot be read");
      }
      raw.meta.version = version.has_version() ? std::optional(version.version()) : std::nullopt;
      raw.meta.has_version_message = true;
    } else {
      raw.meta.unknown_fields.append(field.whole);
    }
    return OkStatus();
  }));
  return raw;
}

void AppendBlock(const Block& block, std::string& out) {
  proto::BlockDesc head;
  head.set_idx(block.index());
  head.set_parent_idx(block.parent());
  out += head.SerializePartialAsString();
  std::string fields;
  for (const VarRef& var : block.vars()) {
    fields.clear();
    if (var->wire_bytes.empty()) AppendVarFields(*var, fields);
    AppendBytesField(kBlockVars, var->wire_bytes.empty() ? fields : var->wire_bytes, out);
  }
  for (const OpEntry& entry : block.ops()) {
    const Op& op = *entry.op;
    fields.clear();
    if (op.wire_bytes().empty()) AppendOpFields(op, fields);
    AppendBytesField(kBlockOps, op.wire_bytes().empty() ? fields : op.wire_bytes(), out);
  }
  if (!block.has_forward_block()) return;
  proto::BlockDesc tail;
  tail.set_forward_block_idx(block.forward_block());
  out += tail.SerializePartialAsString();
}

}  // namespace

Result<Program> ParseProgram(std::string_view bytes) {
  if (bytes.empty()) return DataLoss("E-program-bytes", "the program is empty");
  PENSTOCK_ASSIGN_OR_RETURN(RawProgram raw, ReadRawProgram(bytes));
  if (raw.blocks.empty()) return InvalidArgument("E-program-block", "the program has no block");
  const int block_count = static_cast<int>(raw.blocks.size());
  proto::ProgramExtra extra;
  if (!raw.extra.empty()) PENSTOCK_RETURN_IF_ERROR(ReadExtra(raw.extra, block_count, extra));
  Program program;
  program.mutable_meta() = std::move(raw.meta);
  for (int i = 0; i < block_count; ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(const RawBlock block, ReadRawBlock(raw.blocks[static_cast<std::size_t>(i)], i));
    const proto::BlockExtra& facts =
        i < extra.blocks_size() ? extra.blocks(i) : proto::BlockExtra::default_instance();
    PENSTOCK_RETURN_IF_ERROR(
        FillBlock(block, facts, i == 0 ? program.MutableBlock(0) : program.AddBlock(block.parent)));
  }
  if (!raw.extra.empty()) ApplyMeta(extra, program.mutable_meta());
  return program;
}

std::string SerializeProgram(const Program& program, const WireOptions& options) {
  std::string out;
  std::string block;
  for (int i = 0; i < program.block_count(); ++i) {
    block.clear();
    AppendBlock(program.block(i), block);
    AppendBytesField(kProgramBlocks, block, out);
  }
  const ProgramMeta& meta = program.meta();
  if (meta.op_compatible_map) AppendBytesField(kProgramCompatibility, *meta.op_compatible_map, out);
  if (meta.version || meta.has_version_message) {
    proto::Version version;
    if (meta.version) version.set_version(*meta.version);
    AppendBytesField(kProgramVersion, version.SerializeAsString(), out);
  }
  if (options.extra) {
    const std::string extra = MakeExtra(program);
    if (!extra.empty()) AppendBytesField(kProgramExtra, extra, out);
  }
  out += meta.unknown_fields;
  return out;
}

}  // namespace penstock
