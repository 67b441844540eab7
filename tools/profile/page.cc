#include "tools/profile/page.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "framework/base/strings.h"
#include "tools/plan/numbers.h"
#include "tools/profile/charts.h"
#include "tools/profile/html.h"

namespace penstock::profile {
namespace {

constexpr std::size_t kSlowestMax = 40, kAtPeakMax = 20;  // rows

constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>)";
constexpr char kStyle[] = R"(</title>
<style>
:root { color-scheme: light dark; --text: #1b1b1b; --back: #fff; --soft: #6b6b6b; --line: #d9d9d9;
  --bar: #cfe3f5; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --back: #181818; --soft: #a0a0a0; --line: #3a3a3a; --bar: #1f3d57; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 76em;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
dl { display: grid; grid-template-columns: max-content auto; gap: .2em 1.5em; }
dt { color: var(--soft); } dd { margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; }
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } .t { text-align: left; }
td.bar { background: linear-gradient(to right, var(--bar) var(--w), transparent var(--w)); }
svg { width: 100%; max-width: 60em; }
.c0 { background: #0072b2; } .c1 { background: #e69f00; } .c2 { background: #009e73; }
.c3 { background: #cc79a7; } .c4 { background: #56b4e9; } .c5 { background: #d55e00; }
.c6 { background: #b8a900; } .c7 { background: #999; }
.m0 { background: #7a8a99; } .m1 { background: #009e73; } .m2 { background: #cc79a7; }
.m3 { background: #e69f00; } .live { background: #56b4e9; }
.legend span { margin-right: 1em; }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.note { color: var(--soft); max-width: 56em; }
</style>
</head>
<body>
)";

double Ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }
double Us(double ns) { return ns / 1e3; }

std::string Cell(std::string_view text) { return StrCat("<td>", Escaped(text), "</td>"); }
std::string TextCell(std::string_view text) { return StrCat("<td class=\"t\">", Escaped(text), "</td>"); }
// A share as a number and as a bar.
std::string ShareCell(double share) {
  const std::string percent = tools::Fixed(100 * std::clamp(share, 0.0, 1.0), 1);
  return StrCat("<td class=\"bar\" style=\"--w:", percent, "%\">", tools::Fixed(100 * share, 1), " %</td>");
}
std::string Unknown() { return "<td>-</td>"; }

// The first `left` columns are text.
std::string TableHead(std::initializer_list<std::string_view> names, std::size_t left) {
  std::string out = "<div class=\"wide\"><table>\n<thead><tr>";
  std::size_t column = 0;
  for (const std::string_view name : names)
    out += StrCat(column++ < left ? "<th class=\"t\">" : "<th>", name, "</th>");
  return out + "</tr></thead>\n<tbody>\n";
}
constexpr char kTableEnd[] = "</tbody></table></div>\n";

std::string Fact(std::string_view name, std::string_view text) {
  return StrCat("<dt>", name, "</dt><dd>", Escaped(text), "</dd>\n");
}

std::string Facts(const Report& report) {
  std::string out = "<dl>\n" + Fact("process", report.role);
  if (report.has_plan) {
    out += Fact("program", report.program);
    out += Fact("batch", StrCat(report.batch));
  }
  out += Fact(report.has_plan ? "steps" : "runs", tools::Grouped(static_cast<std::int64_t>(report.runs)));
  out += Fact(report.has_plan ? "a step" : "a run",
              StrCat("median ", Short(Ms(report.median_ns)), " ms, ", Short(Ms(report.least_ns)), " to ",
                     Short(Ms(report.most_ns)), " ms"));
  if (report.has_plan) {
    out += Fact("peak of products",
                StrCat(Short(report.peaks.flops / 1e9), " GFLOP/s, ", report.source_of_flops));
    out += Fact("peak of memory", StrCat(Short(report.peaks.bytes / 1e9), " GB/s, ", report.source_of_bytes));
  }
  return out + "</dl>\n";
}

// GFLOP/s and GB/s: of operations or bytes in so many ns.
std::string RateCell(double amount, double ns) { return ns > 0 ? Cell(Short(amount / ns)) : Unknown(); }

std::string TypeLine(const TypeRow& row, const Report& report, bool waits) {
  const auto calls = static_cast<double>(row.calls);
  std::string out =
      StrCat("<tr>", TextCell(row.type), Cell(tools::Grouped(row.calls)), Cell(Short(Ms(row.total_ns))));
  if (waits) out += row.waited_ns > 0 ? Cell(Short(Ms(row.waited_ns))) : Cell("");
  out +=
      ShareCell(static_cast<double>(row.total_ns) / std::max<double>(1, static_cast<double>(report.run_ns)));
  out += Cell(Short(Us(static_cast<double>(row.total_ns) / calls)));
  if (report.has_plan) {
    out += row.known_flops > 0 ? Cell(Short(row.flops / 1e6 / row.known_flops)) : Unknown();
    out += row.known_flops > 0 ? RateCell(row.flops, row.flops_ns) : Unknown();
    out += row.known_bytes > 0 ? Cell(Short(row.bytes / 1e6 / row.known_bytes)) : Unknown();
    out += row.known_bytes > 0 ? RateCell(row.bytes, row.bytes_ns) : Unknown();
  }
  return out + "</tr>\n";
}

std::string TypeTable(const Report& report) {
  const bool waits = std::ranges::any_of(report.types, [](const TypeRow& row) { return row.waited_ns > 0; });
  std::string out =
      StrCat("<h2>Ops by type</h2>\n<p class=\"note\">Of all ", report.has_plan ? "steps" : "runs",
             ". An op that runs a block counts without the ops of the block.");
  if (waits) out += " Waiting is part of the total: for messages of other processes.";
  if (report.has_plan)
    out += " MFLOP and MB are those of a call, as far as shapes tell them (see the notes).";
  out += "</p>\n";
  if (report.has_plan && waits) {
    out += TableHead({"type", "calls", "total, ms", "waiting, ms", "share", "a call, us", "MFLOP", "GFLOP/s",
                      "MB", "GB/s"},
                     1);
  } else if (report.has_plan) {
    out +=
        TableHead({"type", "calls", "total, ms", "share", "a call, us", "MFLOP", "GFLOP/s", "MB", "GB/s"}, 1);
  } else if (waits) {
    out += TableHead({"type", "calls", "total, ms", "waiting, ms", "share", "a call, us"}, 1);
  } else {
    out += TableHead({"type", "calls", "total, ms", "share", "a call, us"}, 1);
  }
  for (const TypeRow& row : report.types) out += TypeLine(row, report, waits);
  const std::int64_t between = report.run_ns - report.op_ns;
  out += StrCat(
      "<tr><td class=\"t\">between ops</td><td></td>", Cell(Short(Ms(between))), waits ? "<td></td>" : "",
      ShareCell(static_cast<double>(between) / std::max<double>(1, static_cast<double>(report.run_ns))),
      "<td></td>", report.has_plan ? "<td></td><td></td><td></td><td></td>" : "", "</tr>\n");
  return out + kTableEnd;
}

std::string OpLine(const OpRow& op, const Report& report) {
  const auto ns = static_cast<double>(op.ns);
  std::string out =
      StrCat("<tr>", Cell(StrCat(op.position)), TextCell(op.type),
             TextCell(op.result.empty() ? "" : StrCat(op.result, " : ", op.result_type)), Cell(Short(Us(ns))),
             ShareCell(ns / std::max<double>(1, static_cast<double>(report.median_ns))));
  out += op.flops ? RateCell(*op.flops, ns) : Unknown();
  out += op.bytes ? RateCell(*op.bytes, ns) : Unknown();
  out += op.least_ns && ns > 0 ? Cell(tools::Fixed(100 * *op.least_ns / ns, 0) + " %") : Unknown();
  return StrCat(out, TextCell(op.line), "</tr>\n");
}

std::string OpTable(const Report& report) {
  std::vector<const OpRow*> slowest;
  for (const OpRow& op : report.ops) {
    if (op.ns >= 0) slowest.push_back(&op);
  }
  std::ranges::stable_sort(slowest, {}, [](const OpRow* op) { return -op->ns; });
  const std::size_t shown = std::min(slowest.size(), kSlowestMax);
  std::string out =
      StrCat("<h2>Slowest ops</h2>\n<p class=\"note\">", shown == slowest.size() ? "All " : "The ", shown,
             shown == slowest.size() ? "" : StrCat(" of ", slowest.size()),
             " ops of the plan, by the median of their times. \"Of the roof\" is the least time at the "
             "machine's peaks divided by that time; a value above 100 % means that a cache held the "
             "operands.</p>\n");
  out +=
      TableHead({"op", "type", "result", "us", "share", "GFLOP/s", "GB/s", "of the roof", "written at"}, 3);
  for (std::size_t k = 0; k < shown; ++k) out += OpLine(*slowest[k], report);
  return out + kTableEnd;
}

std::string Roofline(const Report& report) {
  const std::string chart = RooflineChart(report);
  if (chart.empty())
    return "<h2>Roofline</h2>\n<p class=\"note\">The shapes of no op tell its operations and bytes.</p>\n";
  return StrCat(
      "<h2>Roofline</h2>\n<figure>\n", chart,
      "<figcaption class=\"note\">A circle is an op; its area is "
      "its share of the step. The roof is what the machine can do: to the left its memory limits, to the "
      "right its arithmetic. Point at a circle for its figures.</figcaption>\n</figure>\n");
}

std::string KeyEntry(std::string_view style, std::string_view name, std::size_t bytes) {
  if (bytes == 0) return "";
  return StrCat("<span><i class=\"", style, "\"></i>", name, ": ",
                tools::Size(static_cast<std::int64_t>(bytes)), "</span> ");
}

std::string Memory(const Report& report) {
  const LiveMemory& memory = report.memory;
  const std::size_t most = memory.live.empty() ? 0 : memory.live[memory.peak];
  std::string out =
      StrCat("<h2>Memory over time</h2>\n<figure>\n", MemoryChart(report), "<p class=\"legend\">");
  out += KeyEntry("m0", "persistable variables", memory.persistable) + KeyEntry("m1", "feeds", memory.fed);
  out += KeyEntry("m2", "temporaries with buffers of their own", memory.own_buffers);
  out += KeyEntry("m3", "workspace of kernels", memory.workspace) +
         KeyEntry("live", "live temporaries, at most", most);
  const std::size_t planned = memory.Constant() + memory.arena;
  out += StrCat("</p>\n<figcaption class=\"note\">By the plan of the executor, for a batch of ", report.batch,
                ", over the step with the median duration. The dashed line is what the run holds: ",
                tools::Size(static_cast<std::int64_t>(planned)), ", of which ",
                tools::Size(static_cast<std::int64_t>(memory.arena)),
                " are the arena of the temporaries.</figcaption>\n</figure>\n");
  if (memory.at_peak.empty()) return out;
  const std::size_t shown = std::min(memory.at_peak.size(), kAtPeakMax);
  out += StrCat("<h2>Temporaries at the peak</h2>\n<p class=\"note\">",
                shown == memory.at_peak.size() ? "All " : "The ", shown,
                shown == memory.at_peak.size() ? "" : StrCat(" largest of ", memory.at_peak.size()),
                " that are live at op ", report.ops[memory.peak].position, ", ",
                Escaped(report.ops[memory.peak].type), ".</p>\n");
  out += TableHead({"variable", "type", "bytes", "from op", "to op"}, 2);
  for (std::size_t k = 0; k < shown; ++k) {
    const LiveValue& value = memory.at_peak[k];
    const auto position = [&](int at) { return StrCat(report.ops[static_cast<std::size_t>(at)].position); };
    out += StrCat("<tr>", TextCell(report.peak_names[k]), TextCell(report.peak_types[k]),
                  Cell(tools::Size(static_cast<std::int64_t>(value.bytes))), Cell(position(value.first)),
                  Cell(position(value.last)), "</tr>\n");
  }
  return out + kTableEnd;
}

constexpr char kNotes[] = R"(<h2>Notes</h2>
<ul class="note">
<li>Times are wall-clock times of the thread that ran the block, from its trace.</li>
<li>Operations: of products and convolutions their multiplications and additions; of elementwise ops one for
each element of the result, whatever it costs. Of other ops they are not known.</li>
<li>Bytes: each operand read or written once, by its shape; of a table only the rows that are looked up. Ops
whose shapes depend on values, and ops on selected rows, have none.</li>
<li>The plan is made for the given batch, without fetches: a fetched temporary has a buffer of its own in the
run.</li>
</ul>
)";

}  // namespace

std::string PageOf(const Report& report) {
  const std::string title =
      report.has_plan ? StrCat("A step of ", report.program) : StrCat("Ops of ", report.role);
  std::string out = StrCat(kHead, Escaped(title), kStyle, "<h1>", Escaped(title), "</h1>\n", Facts(report));
  out += TypeTable(report);
  if (report.has_plan) {
    out += StrCat(OpTable(report), Roofline(report), Memory(report), kNotes);
  } else {
    out +=
        "<p class=\"note\">With <code>--program</code> and <code>--batch</code> the page also has the work "
        "of each "
        "op, a roofline, and the memory of a step.</p>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace penstock::profile
