#include "tools/feed_shapes.h"

#include <gflags/gflags.h>

#include <charconv>
#include <optional>

#include "framework/base/strings.h"

DECLARE_int64(batch);
DEFINE_string(
    feed, "",
    "shapes of feeds for which --batch does not stand: words=16x64,labels=1024x1; separated by commas");

namespace penstock::tools {
namespace {

std::optional<Shape> ShapeIn(std::string_view text) {
  Shape shape;
  for (const std::string& extent : Split(text, 'x')) {
    Dim value = 0;
    const auto [end, error] = std::from_chars(extent.data(), extent.data() + extent.size(), value);
    if (error != std::errc() || end != extent.data() + extent.size() || value < 0 || shape.rank() == 9)
      return std::nullopt;
    shape.Append(value);
  }
  return shape;
}

}  // namespace

Result<exec::FedShapes> ReadFedShapes(std::string_view command) {
  exec::FedShapes fed{.batch = FLAGS_batch};
  if (FLAGS_feed.empty()) return fed;
  for (const std::string& one : Split(FLAGS_feed, ',')) {
    const std::size_t equals = one.rfind('=');
    const std::optional<Shape> shape =
        equals == std::string::npos ? std::nullopt : ShapeIn(std::string_view(one).substr(equals + 1));
    if (!shape || equals == 0) {
      return InvalidArgument("E-usage", command,
                             ": --feed takes shapes such as words=16x64,labels=1024x1, not ", Quote(one));
    }
    fed.shapes.insert_or_assign(one.substr(0, equals), *shape);
  }
  return fed;
}

}  // namespace penstock::tools
