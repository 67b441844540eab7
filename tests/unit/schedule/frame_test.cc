#include "executor/schedule/frame.h"

#include <gtest/gtest.h>

#include "executor/schedule/sequential.h"
#include "tests/support/toy_ops.h"

namespace penstock {
namespace {

using test::ToyOps;
using test::ToyProgram;
using test::Values;

// A pull that is over once somebody waited for it.
class FakePull : public Completion {
 public:
  FakePull(Tensor into, float value, Status status = OkStatus())
      : into_(std::move(into)), value_(value), status_(std::move(status)) {}
  bool Done() const override { return done_; }
  Status Wait() override {
    done_ = true;
    for (float& v : into_.Span<float>()) v = value_;
    return status_;
  }

 private:
  Tensor into_;
  float value_;
  Status status_;
  bool done_ = false;
};

std::unique_ptr<Frame> FrameOf(const Program& program, Scope& scope,
                               const std::vector<std::string>& fetches) {
  auto block = CompileBlock(ToyOps(), program, {.feeds = {}, .fetches = fetches});
  PENSTOCK_CHECK(block.ok(), block.status().ToString());
  auto binding = BindScope(**block, scope);
  PENSTOCK_CHECK(binding.ok(), binding.status().ToString());
  std::vector<VarInfo> known;
  for (const SlotInfo& slot : (*block)->slots) known.push_back(InfoOf(*slot.var));
  auto specialisation = Specialise(*block, known, {});
  PENSTOCK_CHECK(specialisation.ok(), specialisation.status().ToString());
  auto frame = std::make_unique<Frame>(*std::move(specialisation));
  frame->Bind(*std::move(binding));
  return frame;
}

int SlotNamed(const Frame& frame, const std::string& name) {
  for (std::size_t s = 0; s < frame.block().slots.size(); ++s) {
    if (frame.block().slots[s].name == name) return static_cast<int>(s);
  }
  return -1;
}

TEST(Frame, AReaderWaitsForAPendingValueAndOthersDoNot) {
  ToyProgram p;
  p.Persistable("w", {2});
  p.Temporary("a", {2});
  p.Temporary("b", {2});
  p.Add("toy_fill", {}, {{"Out", "a"}}, 0, {{"shape", std::vector<std::int64_t>{2}}, {"value", 1.0f}});
  p.Add("toy_hook", {{"X", "a"}}, {{"Out", "b"}});
  p.Add("toy_add", {{"X", "b"}, {"Y", "w"}}, {{"Out", "b"}});
  Scope scope;
  scope.FindOrCreate("w")->As<Tensor>() = Values({0, 0});
  const auto frame = FrameOf(p.program, scope, {"b"});
  auto pull = std::make_shared<FakePull>(scope.Find("w")->As<Tensor>(), 5.0f);
  frame->BeginRun({});
  frame->SetPending(SlotNamed(*frame, "w"), pull);
  bool done_before_reader = true;
  test::Hook() = [&] { done_before_reader = pull->Done(); };
  LateSteps late;
  const CancellationSource source;
  const Status status = RunSequential(*frame, late, scope, {}, Cancellation(source));
  test::Hook() = nullptr;
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_FALSE(done_before_reader);
  EXPECT_TRUE(pull->Done());
  EXPECT_EQ(frame->Fetch(0)->As<Tensor>().Data<float>()[0], 6);
}

TEST(Frame, APendingValueThatFailsFailsTheRunEvenIfNobodyReadsIt) {
  ToyProgram p;
  p.Persistable("w", {2});
  p.Temporary("a", {2});
  p.Add("toy_add", {{"X", "w"}, {"Y", "w"}}, {{"Out", "a"}});
  Scope scope;
  scope.FindOrCreate("w")->As<Tensor>() = Values({0, 0});
  const auto frame = FrameOf(p.program, scope, {});
  frame->BeginRun({});
  frame->SetPending(SlotNamed(*frame, "a"),
                    std::make_shared<FakePull>(Values({0}), 0.0f, Unavailable("E-toy", "gone")));
  LateSteps late;
  const CancellationSource source;
  EXPECT_EQ(RunSequential(*frame, late, scope, {}, Cancellation(source)).id(), "E-toy");
}

}  // namespace
}  // namespace penstock
