// Damaged parameter files, read by load and load_combine and then used in computation.
#include "framework/base/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "executor/schedule/executor.h"
#include "framework/tensor/serialize.h"
#include "framework/text/parser.h"
#include "operators/all_ops.h"
#include "tests/fuzz/executor/mutate.h"
#include "tests/fuzz/executor/numbers.h"
#include "tests/fuzz/executor/values.h"
#include "tests/fuzz/executor/workers.h"
#include "tests/support/temp_dir.h"

namespace penstock::fuzz {
namespace {

// Loads in the computing program, or before it in a separate one.
constexpr char kLoad[] = R"(
  w = load() {file_path="w"}
  b = load() {file_path="b"}
  rows = load() {file_path="rows"}
  seq = load() {file_path="seq"}
  ids = load() {file_path="ids"}
)";
constexpr char kCombined[] = R"(
  (Out=[w, b, rows, seq, ids]) = load_combine() {file_path="all"}
)";
constexpr char kHalf[] = R"(
  w = load() {file_path="w", load_as_fp16=true}
  b = load() {file_path="w", seek=2l, shape=[3l]}
  (Out=[seq, ids]) = load_combine() {file_path="two"}
)";
constexpr char kDeclared[] = R"(
  data x : f32[?, 4]
  param w : f32[4, 3]
  param b : f32[3]
  persist rows : rows<f32[9, 3]>
  persist seq : f32[?, 3] lod=1
  persist ids : i64[?, 1] lod=1
)";
constexpr char kUndeclared[] = R"(
  data x : f32[?, 4]
  persist w : control
  persist b : control
  persist rows : rows<f32[9, 3]>
  persist seq : control
  persist ids : control
)";
constexpr char kUse[] = R"(
  h : f32[?, 3] = mul(X=x, Y=w)
  s : f32[?, 3] = elementwise_add(X=h, Y=b) {axis=1}
  pooled : f32[?, 3] = sequence_pool(X=seq) {pooltype="MAX"}
  e : f32[?, 3] = lookup_table(W=w, Ids=ids)
  spread : f32[?, 3] = sequence_expand(X=pooled, Y=ids)
  lr : f32[1] = fill_constant() {shape=[1l], value=0.5, dtype=5}
  wide : f32[9, 3] = fill_constant() {shape=[9l, 3l], value=1.0, dtype=5}
  (ParamOut=wide) = sgd(Param=wide, Grad=rows, LearningRate=lr)
  dense : f32[?, 3] = get_tensor_from_selected_rows(X=rows)
  save(X=w) {file_path="again"}
  save(X=rows) {file_path="rows again"}
)";

constexpr std::uint64_t kOneInUndamaged = 16;

struct Files {
  std::map<std::string, std::string> bytes;  // by name
};

std::string Saved(const Tensor& tensor) {
  std::string bytes;
  AppendTensor(bytes, tensor);
  return bytes;
}

Files GoodFiles(Draw& draw) {
  Files files;
  files.bytes["w"] = Saved(AnyTensor(draw, DType::kFp32, {4, 3}));
  files.bytes["b"] = Saved(AnyTensor(draw, DType::kFp32, {3}));
  SelectedRows rows = {{1, 3, 1}, 9, AnyTensor(draw, DType::kFp32, {3, 3})};
  AppendSelectedRows(files.bytes["rows"], rows);
  Tensor seq = AnyTensor(draw, DType::kFp32, {5, 3});
  seq.set_lod({{0, 2, 5}});
  files.bytes["seq"] = Saved(seq);
  Tensor ids(DType::kInt64, {4, 1});
  for (std::int64_t& id : ids.Span<std::int64_t>()) id = draw.Below(4);
  ids.set_lod({{0, 1, 4}});
  files.bytes["ids"] = Saved(ids);
  for (const char* name : {"w", "b", "rows", "seq", "ids"}) files.bytes["all"] += files.bytes[name];
  for (const char* name : {"seq", "ids"}) files.bytes["two"] += files.bytes[name];
  return files;
}

std::string Damaged(std::string bytes, Draw& draw) {
  static constexpr unsigned char kOdd[] = {0, 1, 2, 3, 5, 7, 8, 20, 0x7f, 0x80, 0xff};
  for (int n = draw.Between(1, 4); n > 0 && !bytes.empty(); --n) {
    // The front of a file decides how the rest is read.
    const auto size = static_cast<int>(bytes.size());
    const auto at = static_cast<std::size_t>(draw.Below(draw.OneIn(2) ? std::min(size, 64) : size));
    switch (draw.Below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw.Below(8)));
        break;
      case 1:
      case 2:
        bytes[at] = static_cast<char>(draw.Of(kOdd));
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.erase(at, static_cast<std::size_t>(draw.Between(1, 9)));
        break;
      case 5:
        bytes.insert(at, bytes.substr(static_cast<std::size_t>(draw.Below(size)),
                                      static_cast<std::size_t>(draw.Between(1, 16))));
        break;
      default:  // eight bytes of a number
        for (std::size_t i = at; i < std::min(at + 8, bytes.size()); ++i)
          bytes[i] = static_cast<char>(draw.OneIn(2) ? 0xff : 0x7f);
    }
  }
  return bytes;
}

Program ProgramOfText(const std::string& text) {
  Result<Program> program = ParseText(text, "files");
  PENSTOCK_CHECK(program.ok(), program.status().ToString());
  return *std::move(program);
}

// Runs the programs in the current folder. Returns the number of successful runs, of five.
int RunWithFiles(std::uint64_t number) {
  Draw draw(number * 40503u + 3);
  Files files = GoodFiles(draw);
  if (number % kOneInUndamaged != 0) {
    for (int n = draw.Between(1, 3); n > 0; --n) {
      auto it = files.bytes.begin();
      std::advance(it, draw.Below(static_cast<int>(files.bytes.size())));
      it->second = draw.OneIn(6)
                       ? files.bytes[std::vector<std::string>{"w", "b", "rows", "seq",
                                                              "ids"}[static_cast<std::size_t>(draw.Below(5))]]
                       : Damaged(it->second, draw);
    }
  }
  for (const auto& [name, bytes] : files.bytes) {
    PENSTOCK_CHECK(WriteFile(name, bytes).ok(), "cannot write here");
  }
  static constexpr const char* kLoads[] = {kLoad, kLoad, kCombined, kCombined, kHalf};
  const char* const load = draw.Of(kLoads);
  const char* const declared = draw.OneIn(3) ? kUndeclared : kDeclared;
  exec::Executor executor(AllOps(), {.threads = 1});
  Scope scope;
  const std::vector<exec::Feed> feeds = {{"x", AnyTensor(draw, DType::kFp32, {draw.Between(1, 2), 4})}};
  int ok = 0;
  for (const bool apart : {true, false}) {
    if (apart) {
      ok += executor.Run(ProgramOfText(StrCat("program\nblock 0 {", declared, load, "}\n")), scope, {}, {})
                .ok();
    }
    const Program use = ProgramOfText(StrCat("program\nblock 0 {", declared, apart ? "" : load, kUse, "}\n"));
    for (int run = 0; run < 2; ++run) ok += executor.Run(use, scope, feeds, {}).ok();
  }
  return ok;
}

// Otherwise nothing after the first load is reached.
TEST(ParameterFiles, IntactFilesAreLoadedAndUsed) {
  const test::TempDir dir;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  int ok = 0, damaged = 0;
  for (std::uint64_t n = 0; n < 8; ++n) {
    ok += RunWithFiles(n * kOneInUndamaged);
    damaged += RunWithFiles(n * kOneInUndamaged + 1);
  }
  std::filesystem::current_path(before);
  EXPECT_GE(ok, 20);
  EXPECT_LT(damaged, ok);
}

TEST(ParameterFiles, DamagedFilesRunOrAreRefused) {
  const test::TempDir dir;
  const auto findings = RunCases(NumberOf("PENSTOCK_FILES_FIRST", 0), NumberOf("PENSTOCK_FILES", 200),
                                 {.processes = Processes(), .seconds_max = 60}, [&](std::uint64_t n) {
                                   const std::string own = dir / StrCat(getpid());
                                   std::filesystem::create_directories(own);
                                   PENSTOCK_CHECK(chdir(own.c_str()) == 0, "no folder");
                                   RunWithFiles(n);
                                 });
  for (const Finding& finding : findings) ADD_FAILURE() << "files " << finding.number << ": " << finding.what;
}

}  // namespace
}  // namespace penstock::fuzz
