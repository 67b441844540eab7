#include "executor/observe/receipt.h"

#include <algorithm>
#include <cstdio>

#include "framework/base/strings.h"

namespace penstock::observe {
namespace {

double Seconds(Nanoseconds span) { return std::chrono::duration<double>(span).count(); }

std::string Fixed(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Formats a size: "1.2 GB", "317 B".
std::string Size(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return StrCat(Fixed(value, unit == 0 ? "%.0f" : "%.1f"), " ", kUnits[unit]);
}

// Escapes text for JSON and for label values, which have the same escapes.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  }
  return out;
}

void AppendNumber(std::string& out, const char* name, double value) {
  out += StrCat("\"", name, "\": ", Fixed(value, "%.17g"), ", ");
}

void AppendCounts(std::string& out, const PeerCounts& counts) {
  const auto number = [&](const char* name, std::uint64_t value) {
    out += StrCat("\"", name, "\": ", value, ", ");
  };
  number("bytes_out", counts.bytes_out);
  number("bytes_in", counts.bytes_in);
  number("messages_out", counts.messages_out);
  number("messages_in", counts.messages_in);
  number("resent", counts.resent);
  number("repeats", counts.repeats);
  number("connects", counts.connects);
  number("compressed_bytes", counts.compressed);
  number("compressed_from_bytes", counts.compressed_from);
  number("waits", counts.waits);
  out += StrCat("\"waited_s\": ", Fixed(Seconds(counts.waited), "%.6f"));
}

// Writes one metric family of the exposition.
class Family {
 public:
  Family(std::string& out, std::string_view role, const char* name, const char* type, const char* help)
      : out_(out), role_(role), name_(name) {
    out_ += StrCat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }
  void Sample(double value, std::string_view labels = {}, const char* suffix = "") {
    out_ +=
        StrCat(name_, suffix, "{role=\"", Escaped(role_), "\"", labels, "} ", Fixed(value, "%.17g"), "\n");
  }

 private:
  std::string& out_;
  const std::string_view role_;
  const char* const name_;
};

struct PeerFamily {
  const char* name;
  const char* help;
  double (*value)(const Counts::Peer&);
};

constexpr PeerFamily kPeerFamilies[] = {
    {"penstock_sent_bytes_total", "Bytes of tensors and ids sent to a peer.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.bytes_out); }},
    {"penstock_received_bytes_total", "Bytes of tensors and ids received from a peer.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.bytes_in); }},
    {"penstock_sent_messages_total", "Messages sent to a peer.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.messages_out); }},
    {"penstock_received_messages_total", "Messages received from a peer.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.messages_in); }},
    {"penstock_resent_messages_total", "Messages sent again because no answer came.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.resent); }},
    {"penstock_dropped_repeats_total", "Messages that came again and were dropped.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.repeats); }},
    {"penstock_connects_total", "Connections begun to a peer, or hellos of a trainer.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.connects); }},
    {"penstock_compressed_bytes_total", "Bytes of compressed gradients, as sent to a peer.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.compressed); }},
    {"penstock_compressed_from_bytes_total", "Bytes of the same gradients as float32.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.compressed_from); }},
    {"penstock_waits_total", "Waits that ended with a message of the peer.",
     [](const Counts::Peer& peer) { return static_cast<double>(peer.counts.waits); }},
    {"penstock_waited_seconds_total", "Seconds waited for the peer.",
     [](const Counts::Peer& peer) { return Seconds(peer.counts.waited); }},
};

bool HasRows(const Counts& counts) {
  return counts.rows.entered + counts.rows.rejected + counts.rows.evicted > 0;
}

void AppendRows(std::string& out, std::string_view role, const Counts& counts) {
  if (!HasRows(counts)) return;
  Family(out, role, "penstock_rows_entered_total", "counter", "Rows made in tables with a policy of rows.")
      .Sample(static_cast<double>(counts.rows.entered));
  Family(out, role, "penstock_rows_rejected_total", "counter",
         "Rows of gradients dropped because their ids had not entered.")
      .Sample(static_cast<double>(counts.rows.rejected));
  Family(out, role, "penstock_rows_evicted_total", "counter", "Rows evicted from tables.")
      .Sample(static_cast<double>(counts.rows.evicted));
}

bool HasColdRows(const Counts& counts) { return counts.cold_rows.hot + counts.cold_rows.asked > 0; }

void AppendColdRows(std::string& out, std::string_view role, const Counts& counts) {
  if (!HasColdRows(counts)) return;
  const ColdRowCounts& rows = counts.cold_rows;
  const auto add = [&](const char* name, const char* type, const char* help, std::uint64_t value) {
    Family(out, role, name, type, help).Sample(static_cast<double>(value));
  };
  add("penstock_rows_hot", "gauge", "Rows in memory, of tables with cold_dir.", rows.hot);
  add("penstock_rows_cold", "gauge", "Rows on disk, of tables with cold_dir.", rows.cold);
  add("penstock_rows_cold_bytes", "gauge", "Bytes of the files of rows on disk.", rows.file_bytes);
  add("penstock_rows_asked_total", "counter", "Ids of updates and lookups while rows were on disk.",
      rows.asked);
  add("penstock_rows_fetched_total", "counter", "Rows read from disk for them.", rows.fetched);
  add("penstock_rows_spilled_total", "counter", "Rows written to disk.", rows.written);
}

bool LookedAhead(const Counts& counts) { return counts.ahead.used + counts.ahead.unused > 0; }

void AppendAhead(std::string& out, std::string_view role, const Counts& counts) {
  if (!LookedAhead(counts)) return;
  Family(out, role, "penstock_lookups_ahead_total", "counter",
         "Requests for rows of tables made before the step that looked them up.")
      .Sample(static_cast<double>(counts.ahead.used));
  Family(out, role, "penstock_lookups_ahead_unused_total", "counter",
         "Such requests whose step looked up other rows.")
      .Sample(static_cast<double>(counts.ahead.unused));
  Family(out, role, "penstock_lookups_hidden_seconds_total", "counter",
         "Seconds that such requests took beside other work.")
      .Sample(Seconds(counts.ahead.hidden));
}

void AppendStaleness(std::string& out, std::string_view role, const Counts& counts) {
  if (counts.staleness_count() == 0) return;
  Family family(out, role, "penstock_staleness_updates", "histogram",
                "Updates of a chunk between a pull and the gradient computed from it.");
  std::uint64_t below = 0;
  for (std::size_t b = 0; b + 1 < kStalenessBuckets; ++b) {
    below += counts.staleness[b];
    family.Sample(static_cast<double>(below), StrCat(",le=\"", b, "\""), "_bucket");
  }
  const auto all = static_cast<double>(counts.staleness_count());
  family.Sample(all, ",le=\"+Inf\"", "_bucket");
  family.Sample(static_cast<double>(counts.staleness_sum), {}, "_sum");
  family.Sample(all, {}, "_count");
}

}  // namespace

std::string ReceiptLine(const Counts& counts) {
  const PeerCounts total = counts.Total();
  std::string line = StrCat("receipt: ", counts.steps, " steps in ", Fixed(Seconds(counts.up), "%.1f"),
                            " s, ", Size(total.bytes_out), " sent, ", Size(total.bytes_in), " received, ",
                            Fixed(Seconds(counts.exposed), "%.2f"), " s exposed");
  for (const Counts::Peer& peer : counts.peers) {
    if (peer.counts.waits == 0) continue;
    line += StrCat("; waited ", Fixed(Seconds(peer.counts.waited), "%.2f"), " s for ", peer.name);
  }
  if (total.resent + total.repeats > 0)
    line += StrCat("; ", total.resent, " messages sent again, ", total.repeats, " repeats dropped");
  if (total.compressed_from > 0) {
    line += StrCat("; compressed gradients took ", Size(total.compressed), ", ", Size(total.compressed_from),
                   " as float32");
  }
  if (const std::uint64_t all = counts.staleness_count(); all > 0) {
    line += StrCat("; staleness ",
                   Fixed(static_cast<double>(counts.staleness_sum) / static_cast<double>(all), "%.2f"),
                   " updates on average");
  }
  if (HasRows(counts)) {
    line += StrCat("; ", counts.rows.entered, " rows of tables made, ", counts.rows.evicted, " evicted, ",
                   counts.rows.rejected, " rows of gradients dropped before their ids entered");
  }
  if (HasColdRows(counts)) {
    const ColdRowCounts& rows = counts.cold_rows;
    line += StrCat("; ", rows.hot, " rows in memory and ", rows.cold, " on disk in ", Size(rows.file_bytes),
                   ", ", rows.fetched, " of ", rows.asked, " ids read from disk");
  }
  if (LookedAhead(counts)) {
    line += StrCat("; ", counts.ahead.used, " lookups asked ahead, which hid ",
                   Fixed(Seconds(counts.ahead.hidden), "%.2f"), " s, and ", counts.ahead.unused, " in vain");
  }
  return line;
}

std::string ReceiptJson(std::string_view role, const Counts& counts) {
  std::string out = StrCat("{\"role\": \"", Escaped(role), "\", ");
  AppendNumber(out, "seconds", Seconds(counts.up));
  out += StrCat("\"steps\": ", counts.steps, ", \"updates\": ", counts.updates, ", ");
  AppendNumber(out, "exposed_s", Seconds(counts.exposed));
  AppendNumber(out, "background_s", Seconds(counts.in_background));
  AppendCounts(out, counts.Total());
  if (HasRows(counts)) {
    out += StrCat(", \"rows_entered\": ", counts.rows.entered, ", \"rows_rejected\": ", counts.rows.rejected,
                  ", \"rows_evicted\": ", counts.rows.evicted);
  }
  if (HasColdRows(counts)) {
    const ColdRowCounts& rows = counts.cold_rows;
    out += StrCat(", \"rows_hot\": ", rows.hot, ", \"rows_cold\": ", rows.cold,
                  ", \"rows_cold_bytes\": ", rows.file_bytes, ", \"rows_asked\": ", rows.asked,
                  ", \"rows_fetched\": ", rows.fetched, ", \"rows_spilled\": ", rows.written);
  }
  if (LookedAhead(counts)) {
    out += StrCat(", \"lookups_ahead\": ", counts.ahead.used,
                  ", \"lookups_ahead_unused\": ", counts.ahead.unused,
                  ", \"lookups_hidden_s\": ", Fixed(Seconds(counts.ahead.hidden), "%.17g"));
  }
  out += ", \"staleness\": [";
  if (counts.staleness_count() > 0) {
    for (std::size_t b = 0; b < kStalenessBuckets; ++b)
      out += StrCat(b == 0 ? "" : ", ", counts.staleness[b]);
  }
  out += "], \"peers\": [";
  for (const Counts::Peer& peer : counts.peers) {
    out += StrCat(&peer == &counts.peers.front() ? "" : ", ", "{\"name\": \"", Escaped(peer.name), "\", ");
    AppendCounts(out, peer.counts);
    out += "}";
  }
  return out + "]}\n";
}

std::string Exposition(std::string_view role, const Counts& counts) {
  std::string out;
  Family(out, role, "penstock_up_seconds", "gauge", "Seconds since this process began to count.")
      .Sample(Seconds(counts.up));
  Family(out, role, "penstock_steps_total", "counter", "Steps that ended.")
      .Sample(static_cast<double>(counts.steps));
  Family(out, role, "penstock_updates_total", "counter", "Optimize blocks that ran.")
      .Sample(static_cast<double>(counts.updates));
  Family(out, role, "penstock_exposed_seconds_total", "counter",
         "Seconds that the training thread was held up in communication.")
      .Sample(Seconds(counts.exposed));
  Family(out, role, "penstock_background_wait_seconds_total", "counter",
         "Seconds that threads of a communicator waited.")
      .Sample(Seconds(counts.in_background));
  const auto label = [](const Counts::Peer& peer) { return StrCat(",peer=\"", Escaped(peer.name), "\""); };
  for (const PeerFamily& each : kPeerFamilies) {
    if (counts.peers.empty()) break;
    Family family(out, role, each.name, "counter", each.help);
    for (const Counts::Peer& peer : counts.peers) family.Sample(each.value(peer), label(peer));
  }
  if (!counts.peers.empty()) {
    Family silent(out, role, "penstock_peer_silent_seconds", "gauge", "Seconds since the peer was heard.");
    for (const Counts::Peer& peer : counts.peers) silent.Sample(Seconds(peer.silent), label(peer));
  }
  AppendStaleness(out, role, counts);
  AppendRows(out, role, counts);
  AppendColdRows(out, role, counts);
  AppendAhead(out, role, counts);
  return out;
}

}  // namespace penstock::observe
