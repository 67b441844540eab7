#include "tests/support/run_program.h"

#include <cmath>

#include "framework/base/files.h"
#include "framework/wire/wire.h"
#include "tests/support/corpus.h"
#include "tests/support/op_harness.h"

namespace penstock::test {

Program ProgramOf(const std::string& path) {
  auto bytes = ReadFile(Existing(path));
  PENSTOCK_CHECK(bytes.ok(), bytes.status().ToString());
  auto program = ParseProgram(*bytes);
  PENSTOCK_CHECK(program.ok(), StrCat(path, ": ", program.status().ToString()));
  return *std::move(program);
}

Arrays ArraysOf(const std::string& path) {
  auto arrays = ReadNpz(BytesOf(path));
  PENSTOCK_CHECK(arrays.ok(), StrCat(path, ": ", arrays.status().ToString()));
  return *std::move(arrays);
}

void SetTensor(Scope& scope, const std::string& name, const Tensor& value) {
  Variable* variable = scope.Find(name);
  if (variable == nullptr) variable = scope.FindOrCreate(name);
  variable->As<Tensor>() = value.Clone();
}

std::vector<exec::Feed> FeedsOf(const Arrays& arrays, const std::string& prefix,
                                const std::vector<std::string>& names) {
  std::vector<exec::Feed> feeds;
  for (const std::string& name : names) {
    Tensor tensor = arrays.at(prefix + name).Clone();
    if (const auto lens = arrays.find(StrCat(prefix, name, ":lens")); lens != arrays.end()) {
      LoDLevel offsets = {0};
      for (std::int64_t i = 0; i < lens->second.count(); ++i) {
        offsets.push_back(offsets.back() + static_cast<std::uint64_t>(ElementAt(lens->second, i)));
      }
      tensor.set_lod({offsets});
    }
    feeds.push_back({name, std::move(tensor)});
  }
  return feeds;
}

Status NearValues(const std::string& what, const Tensor& a, const Tensor& b, double rtol, double atol) {
  if (a.count() != b.count()) {
    return InternalError("E-test", what, ": ", a.shape(), " against ", b.shape());
  }
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double x = ElementAt(a, i), y = ElementAt(b, i);
    if (!(std::abs(x - y) <= atol + rtol * std::abs(y))) {
      return InternalError("E-test", what, ": element ", i, " is ", x, "; it should be ", y);
    }
  }
  return OkStatus();
}

}  // namespace penstock::test
