// Any bytes as lines of MultiSlot text, or as instances from another trainer, give an error, or instances
// that form a batch and round-trip unchanged.
#include "executor/dataset/parser.h"
#include "executor/dataset/records.h"
#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {
namespace {

// The invariants of a batch, for any input.
void MustBeWhole(const dataset::Format& format, const Batch& batch, std::size_t records) {
  PENSTOCK_CHECK(batch.size() == format.slots.size(), "a batch lacks a slot");
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (format.slots[i].dense) {
      PENSTOCK_CHECK(batch[i].shape()[0] == static_cast<Dim>(records), "a dense slot lacks a row");
      continue;
    }
    const LoDLevel& offsets = batch[i].lod().at(0);
    PENSTOCK_CHECK(offsets.size() == records + 1, "a sequence is missing");
    PENSTOCK_CHECK(static_cast<Dim>(offsets.back()) == batch[i].shape()[0],
                   "offsets do not cover the numbers");
  }
}

void TryLines(const dataset::Format& format, std::string_view input) {
  const dataset::Parser parser(format);
  dataset::Records records;
  std::string record;
  bool rest = false;
  for (const std::string& line : Split(input, '\n')) {
    const Status parsed = parser.Parse(line, record, rest);
    if (!parsed.ok()) {
      MustBeTheInputsFault(parsed);
      continue;
    }
    records.Add(record);
  }
  MustBeWhole(format, dataset::MakeBatch(format, records.Slice(0, records.size())), records.size());
  const std::string packed = records.Pack(0, 1, 7);
  dataset::Records again;
  PENSTOCK_CHECK(again.Unpack(format, packed).ok(), "what was packed does not unpack");
  PENSTOCK_CHECK(again.Pack(0, 1, 7) == packed, "what was packed is another when it was unpacked");
}

}  // namespace

void Try(std::string_view input) {
  for (const bool own_ways : {false, true}) {
    const dataset::Format format = {
        .slots = {{.name = "words"},
                  {.name = "price", .is_float = true, .dense = true, .extents = {2}},
                  {.name = "weights", .is_float = true}},
        .drops_zeros = own_ways,
        .has_ids = own_ways};
    TryLines(format, input);
    dataset::Records received;
    const Status unpacked = received.Unpack(format, input);
    if (unpacked.ok()) {
      MustBeWhole(format, dataset::MakeBatch(format, received.Slice(0, received.size())), received.size());
    } else {
      MustBeTheInputsFault(unpacked);
    }
  }
}

}  // namespace penstock::fuzz
