#include "executor/pserver/key_checkpoints.h"

#include <algorithm>

#include "executor/kvstore/optimizer.h"

namespace penstock::pserver {
namespace {

using checkpoint::KeyEntry;
using checkpoint::Value;
using checkpoint::ValueKind;

std::string TextOfType(const Tensor& tensor) { return StrCat(DTypeName(tensor.dtype()), tensor.shape()); }

std::string TextOfType(const protocol::KeyBody& key) {
  return StrCat(DTypeName(static_cast<DType>(key.dtype)), Shape(std::span<const Dim>(key.shape)));
}

// The name of a state in a part. One that is not cut as the value is has a name for each chunk.
std::string NameOfState(const std::string& state, bool is_cut, Dim begin) {
  return is_cut || begin == 0 ? state : StrCat(state, "#", begin);
}

bool HasRowsOf(const Tensor& state, const Tensor& value) {
  return state.shape().rank() > 0 && state.shape()[0] == value.shape()[0];
}

Value ValueOfKey(const std::string& key, const std::string& name, ValueKind kind, std::optional<Dim> begin,
                 const Tensor& tensor) {
  Value value{
      .entry = {.name = name, .kind = kind, .of = key, .row_begin = begin, .type = TextOfType(tensor)},
      .value = {}};
  value.value.As<Tensor>() = tensor;
  return value;
}

}  // namespace

Result<std::unique_ptr<KeyCheckpoints>> KeyCheckpoints::Make(Disk& disk, CheckpointOptions options,
                                                             Server server) {
  const auto refuse = [&](const char* what) {
    return Unimplemented("E-kv-checkpoint", "pserver ", server.address, " serves keys, and ", what);
  };
  if (options.share) {
    return refuse("needs an interval for its checkpoints: workers have no common step to agree on")
        .With("give --checkpoint_steps K instead of auto");
  }
  if (options.restarts > 0)
    return refuse("is not started again by itself: the whole job is").With("--max_restart N does");
  PENSTOCK_ASSIGN_OR_RETURN(const int number, options.NumberOf(server.address));
  std::unique_ptr<KeyCheckpoints> made(
      new KeyCheckpoints(disk, std::move(options), std::move(server), number));
  PENSTOCK_RETURN_IF_ERROR(made->options_.PrepareFolder(disk, made->writer_, number));
  PENSTOCK_RETURN_IF_ERROR(made->Restore());
  return made;
}

Status KeyCheckpoints::Differs(const std::string& how) const {
  return checkpoint::DiffersFrom(FolderOf(first_step()), how);
}

// A key lies where its name and the number of servers say, so each server has what its own part has.
Status KeyCheckpoints::Restore() {
  if (first_step() == 0) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const checkpoint::Found found,
                            checkpoint::FindWhole(disk_, options_.folder, first_step()));
  const checkpoint::Manifest& first = found.parts.front();
  if (!first.keys) return Differs("its pservers had a program, and these serve keys");
  if (found.parts.size() != options_.servers.size() || first.trainers != server_.workers) {
    return Differs(StrCat("it was made by ", first.trainers, " workers and ", found.parts.size(),
                          " pservers, and this job has ", server_.workers, " and ", options_.servers.size(),
                          ". Keys continue with as many as before"));
  }
  return RestoreKeys(found.folder, found.parts[static_cast<std::size_t>(number_)]);
}

Status KeyCheckpoints::RestoreKeys(const std::string& folder, const checkpoint::Manifest& part) {
  std::vector<std::shared_ptr<const kvstore::KeyOptimizer>> optimizers;
  for (const std::string& text : part.optimizers) {
    PENSTOCK_ASSIGN_OR_RETURN(kvstore::KeyOptimizer parsed, kvstore::ParseOptimizer(text, server_.ops));
    optimizers.push_back(std::make_shared<const kvstore::KeyOptimizer>(std::move(parsed)));
  }
  if (!part.keys) return Differs("one of its pservers had a program");
  for (const KeyEntry& entry : *part.keys) {
    std::map<Dim, KeyCopy> chunks;  // by their begin
    const auto of_key = [&](const checkpoint::ValueEntry& value) { return value.of == entry.name; };
    for (const checkpoint::ValueEntry& value : part.values) {
      if (!of_key(value) || value.kind != ValueKind::kParam) continue;
      PENSTOCK_ASSIGN_OR_RETURN(Variable read, checkpoint::ReadValue(disk_, folder, part, value));
      KeyCopy& chunk = chunks[value.row_begin.value_or(0)];
      chunk.value = read.As<Tensor>();
      chunk.rounds = entry.rounds;
      chunk.since = entry.since;
      if (entry.optimizer >= 0) chunk.optimizer = optimizers[static_cast<std::size_t>(entry.optimizer)];
    }
    for (const checkpoint::ValueEntry& value : part.values) {
      if (!of_key(value) || value.kind != ValueKind::kState) continue;
      PENSTOCK_ASSIGN_OR_RETURN(Variable read, checkpoint::ReadValue(disk_, folder, part, value));
      const auto is_its = [&](const auto& chunk) {
        if (value.row_begin) return chunk.first == *value.row_begin;
        return chunk.first == 0 ? chunks.size() == 1 || value.name.find('#') == std::string::npos
                                : EndsWith(value.name, StrCat("#", chunk.first));
      };
      const auto chunk = std::ranges::find_if(chunks, is_its);
      if (chunk == chunks.end()) return Differs(StrCat("it has ", value.name, " without its key"));
      const bool has_end = !value.row_begin && chunk->first > 0;
      const std::string name = value.name.substr(0, has_end ? value.name.rfind('#') : std::string::npos);
      chunk->second.states.emplace_back(name, read.As<Tensor>());
    }
    Kept& kept = kept_[{entry.name, entry.moved}];
    kept.entry = entry;
    for (auto& [begin, chunk] : chunks) kept.chunks.push_back(std::move(chunk));
  }
  return OkStatus();
}

Result<std::optional<KeyCheckpoints::Kept>> KeyCheckpoints::Take(const protocol::KeyBody& key) {
  const auto found = kept_.find({key.name, key.moved});
  if (found == kept_.end()) return std::optional<Kept>();
  const KeyEntry& entry = found->second.entry;
  if (entry.type != TextOfType(key) || entry.rows != key.rows || entry.whole != key.whole ||
      entry.begin != key.begin) {
    return Differs(StrCat("key ", Quote(key.name), " is ", TextOfType(key), " here, and was ", entry.type));
  }
  std::optional<Kept> kept = std::move(found->second);
  kept_.erase(found);
  return kept;
}

std::shared_ptr<KeyCopy> KeyCheckpoints::CopyFor(ChunkId at) {
  return copies_[at] = std::make_shared<KeyCopy>();
}

KeyCheckpoints::Part KeyCheckpoints::TakeCopies(const std::map<int, Place>& params) {
  Part part;
  part.head.keys.emplace();
  std::vector<std::string>& texts = part.head.optimizers;
  for (const auto& [at, copy] : std::exchange(copies_, {})) {
    const auto place = params.find(at.param);
    if (place == params.end()) continue;
    const protocol::KeyBody& body = place->second.body;
    const Dim begin = body.begin + place->second.chunk_rows * at.chunk;
    if (at.chunk == 0) {
      KeyEntry& entry = part.head.keys->emplace_back(KeyEntry{.name = body.name, .type = TextOfType(body)});
      entry.begin = body.begin;
      entry.rows = body.rows;
      entry.whole = body.whole;
      entry.moved = body.moved;
      entry.rounds = copy->rounds;
      entry.since = copy->since;
      if (copy->optimizer != nullptr) {
        const std::string text = copy->optimizer->ToString();
        const auto known = std::ranges::find(texts, text);
        entry.optimizer = known - texts.begin();
        if (known == texts.end()) texts.push_back(text);
      }
    }
    part.values.push_back(ValueOfKey(body.name, body.name, ValueKind::kParam, begin, copy->value));
    for (const auto& [name, state] : copy->states) {
      const bool is_cut = HasRowsOf(state, copy->value);
      part.values.push_back(ValueOfKey(body.name, NameOfState(name, is_cut, begin), ValueKind::kState,
                                       is_cut ? std::optional(begin) : std::nullopt, state));
    }
  }
  return part;
}

Status KeyCheckpoints::Write(std::uint64_t step, Part part) {
  checkpoint::Manifest& head = part.head;
  head.step = step;
  head.server = number_;
  head.servers = static_cast<int>(options_.servers.size());
  head.trainers = server_.workers;
  head.run = options_.run;
  return writer_.Write(std::move(head), part.values).In(StrCat("checkpoint of step ", step));
}

}  // namespace penstock::pserver
