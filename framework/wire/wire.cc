#include "framework/wire/wire.h"

#include <google/protobuf/io/coded_stream.h>

#include <span>

#include "extra.pb.h"
#include "framework.pb.h"
#include "framework/wire/items.h"
#include "framework/wire/plain.h"
#include "framework/wire/write.h"

namespace penstock {
namespace {

using google::protobuf::io::CodedInputStream;
using wire::AppendMessage;

// A wire type and the field numbers of the two outer messages, which are read by hand to keep the bytes of
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
template <typename Visit>
Status ForEachField(std::string_view message, std::string_view what, const Visit& visit) {
  if (message.size() > static_cast<std::size_t>(INT32_MAX)) {
    return InvalidArgument("E-program-size", what, " is larger than 2 GiB");
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

// Parses without protobuf's message on standard error if a required field is missing.
bool ParseQuietly(std::string_view bytes, google::protobuf::MessageLite& message) {
  return message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
         message.IsInitialized();
}

// Consecutive fields of a BlockDesc that one thread reads.
struct Stretch {
  std::string_view bytes;
  std::size_t first_var = 0, first_op = 0;  // indices of the first variable and op in it
};
// Long enough to be worth starting a thread.
constexpr std::size_t kStretchBytes = std::size_t{1} << 17;

// One BlockDesc: its own fields, the numbers of its variables and ops, and the stretches that hold them.
struct RawBlock {
  std::int32_t index = -1;
  std::int32_t parent = -1;
  std::optional<std::int32_t> forward;
  std::size_t vars = 0, ops = 0;
  std::vector<Stretch> stretches;
};

// Adds the next field, before its item is counted.
void AddToStretch(std::string_view field, RawBlock& raw) {
  std::vector<Stretch>& all = raw.stretches;
  if (all.empty() || all.back().bytes.size() >= kStretchBytes)
    all.push_back({{field.data(), 0}, raw.vars, raw.ops});
  Stretch& last = all.back();
  last.bytes = {last.bytes.data(), last.bytes.size() + field.size()};
}

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
    AddToStretch(field.whole, raw);
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
      ++raw.vars;
    } else if (field.number == kBlockOps) {
      ++raw.ops;
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

// Reads the items of a stretch, and applies the facts that the program's extension has about its variables.
Status ReadStretch(const Stretch& stretch, int block, const VarFactsByName& facts, std::span<VarRef> vars,
                   std::span<std::shared_ptr<Op>> ops) {
  std::size_t next_var = stretch.first_var, next_op = stretch.first_op;
  return ForEachField(stretch.bytes, "block", [&](const Field& field) -> Status {
    if (field.number == kBlockVars) {
      const std::size_t i = next_var++;
      auto var = ParseVar(field.bytes);
      if (!var.ok()) return std::move(var).status().In(StrCat("variable ", i, " of block ", block));
      if (const auto of = facts.find((*var)->name); of != facts.end()) ApplyVarFacts(*of->second, **var);
      vars[i] = *std::move(var);
    } else if (field.number == kBlockOps) {
      const std::size_t i = next_op++;
      auto op = ParseOp(field.bytes);
      if (!op.ok()) return std::move(op).status().In(StrCat("op ", i, " of block ", block));
      ops[i] = *std::move(op);
    }
    return OkStatus();
  });
}

Status AddVars(const std::vector<VarRef>& vars, Block& block) {
  block.ReserveVars(vars.size());
  for (const VarRef& var : vars) {
    if (block.AddVar(var)) continue;
    return InvalidArgument("E-program-var-twice", "block ", block.index(), " declares ", Quote(var->name),
                           " twice");
  }
  return OkStatus();
}

void AddOps(std::vector<std::shared_ptr<Op>> ops, Block& block) {
  std::vector<OpEntry> entries;
  entries.reserve(ops.size());
  for (std::shared_ptr<Op>& op : ops) entries.push_back({block.NewId(), std::move(op)});
  block.SetOps(std::move(entries));
}

Status FillBlock(const RawBlock& raw, const proto::BlockExtra& extra, ThreadPool* threads, Block& block) {
  if (raw.forward) block.set_forward_block(*raw.forward);
  const VarFactsByName facts = VarFactsOf(extra);
  std::vector<VarRef> vars(raw.vars);
  std::vector<std::shared_ptr<Op>> ops(raw.ops);
  std::vector<Status> read(raw.stretches.size());
  ForEach(read.size() > 1 ? threads : nullptr, read.size(),
          [&](std::size_t i) { read[i] = ReadStretch(raw.stretches[i], raw.index, facts, vars, ops); });
  for (const Status& status : read) PENSTOCK_RETURN_IF_ERROR(status);
  PENSTOCK_RETURN_IF_ERROR(AddVars(vars, block));
  ApplyOpFacts(extra, ops);
  AddOps(std::move(ops), block);
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

// Reserves memory for all items of a list, estimated from the size of the items already written, so that
// `out` is seldom reallocated.
class ItemRoom {
 public:
  ItemRoom(std::size_t count, std::string& out) : count_(count), begin_(out.size()), out_(out) {}
  void Next() {
    constexpr std::size_t kBetween = 256;
    if (++done_ % kBetween != 0) return;
    const std::size_t all = (out_.size() - begin_) / done_ * count_;
    // A quarter more, for facts about each item, which are appended later.
    if (begin_ + all > out_.capacity()) out_.reserve(begin_ + all + all / 4);
  }

 private:
  std::size_t count_, begin_;
  std::size_t done_ = 0;
  std::string& out_;
};

void AppendBlock(const Block& block, std::string& out) {
  proto::BlockDesc head;
  head.set_idx(block.index());
  head.set_parent_idx(block.parent());
  out += head.SerializePartialAsString();
  ItemRoom var_room(block.vars().size(), out);
  for (const VarRef& var : block.vars()) {
    AppendMessage(kBlockVars, out, [&] {
      if (var->wire_bytes.empty()) AppendVarFields(*var, out);
      out += var->wire_bytes.str();
    });
    var_room.Next();
  }
  ItemRoom op_room(block.ops().size(), out);
  for (const OpEntry& entry : block.ops()) {
    const Op& op = *entry.op;
    AppendMessage(kBlockOps, out, [&] {
      if (op.wire_bytes().empty()) AppendOpFields(op, out);
      out += op.wire_bytes();
    });
    op_room.Next();
  }
  if (!block.has_forward_block()) return;
  proto::BlockDesc tail;
  tail.set_forward_block_idx(block.forward_block());
  out += tail.SerializePartialAsString();
}

}  // namespace

Result<Program> ParseProgram(std::string_view bytes, ThreadPool* threads) {
  if (bytes.empty()) return DataLoss("E-program-bytes", "the program is empty");
  PENSTOCK_ASSIGN_OR_RETURN(RawProgram raw, ReadRawProgram(bytes));
  if (raw.blocks.empty()) return InvalidArgument("E-program-block", "the program has no block");
  const int block_count = static_cast<int>(raw.blocks.size());
  proto::ProgramExtra extra;
  if (!raw.extra.empty()) PENSTOCK_RETURN_IF_ERROR(ReadExtra(raw.extra, extra));
  Program program;
  program.mutable_meta() = std::move(raw.meta);
  for (int i = 0; i < block_count; ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(const RawBlock block, ReadRawBlock(raw.blocks[static_cast<std::size_t>(i)], i));
    const proto::BlockExtra& facts =
        i < extra.blocks_size() ? extra.blocks(i) : proto::BlockExtra::default_instance();
    PENSTOCK_RETURN_IF_ERROR(
        FillBlock(block, facts, threads, i == 0 ? program.MutableBlock(0) : program.AddBlock(block.parent)));
  }
  if (!raw.extra.empty()) ApplyMeta(extra, program.mutable_meta());
  return program;
}

std::string SerializeProgram(const Program& program, const WireOptions& options) {
  std::string out;
  for (int i = 0; i < program.block_count(); ++i) {
    AppendMessage(kProgramBlocks, out, [&] { AppendBlock(program.block(i), out); });
  }
  const ProgramMeta& meta = program.meta();
  if (meta.op_compatible_map) AppendBytesField(kProgramCompatibility, *meta.op_compatible_map, out);
  if (meta.version || meta.has_version_message) {
    proto::Version version;
    if (meta.version) version.set_version(*meta.version);
    AppendBytesField(kProgramVersion, version.SerializeAsString(), out);
  }
  if (options.extra) {
    const std::size_t before = out.size();
    bool needed = false;
    AppendMessage(kProgramExtra, out, [&] { needed = AppendExtra(program, out); });
    if (!needed) out.resize(before);
  }
  out += meta.unknown_fields;
  return out;
}

}  // namespace penstock
