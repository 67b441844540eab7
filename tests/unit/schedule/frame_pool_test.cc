// Frames of several shapes share memory; frames in use at once do not.
#include "executor/schedule/frame_pool.h"

#include <gtest/gtest.h>

#include "executor/schedule/executor.h"
#include "tests/support/toy_ops.h"

namespace penstock::exec {
namespace {

using test::ToyOps;
using test::TwoAdds;

class Frames : public testing::Test {
 protected:
  Frames() {
    auto block = CompileBlock(ToyOps(), TwoAdds().program, {.feeds = {"x", "y"}, .fetches = {"out"}});
    PENSTOCK_CHECK(block.ok(), block.status().ToString());
    block_ = *std::move(block);
  }

  std::unique_ptr<Frame> Make(Dim rows) {
    std::vector<TensorDesc> known;
    for (const SlotInfo& slot : block_->slots) {
      known.push_back(DescOf(*slot.var));
      if (slot.home == Home::kFeed) known.back().shape.Set(0, rows);
    }
    auto made = Specialise(block_, std::move(known), Services());
    PENSTOCK_CHECK(made.ok(), made.status().ToString());
    auto frame = std::make_unique<Frame>(made->plan, std::move(made->kernels));
    pool_.Lend(*frame);
    return frame;
  }
  static const Buffer* ArenaOf(const std::unique_ptr<Frame>& frame) { return frame->memory().arena.get(); }

  std::shared_ptr<const CompiledBlock> block_;
  FramePool pool_{16};
};

TEST_F(Frames, SmallerShapesReuseTheLargestFrame) {
  std::unique_ptr<Frame> large = Make(100);
  const Buffer* const arena = ArenaOf(large);
  pool_.Give(std::move(large));
  for (const Dim rows : {1, 7, 99}) {
    std::unique_ptr<Frame> small = Make(rows);
    EXPECT_EQ(ArenaOf(small), arena) << rows;
    pool_.Give(std::move(small));
  }
}

TEST_F(Frames, ConcurrentFramesHaveSeparateMemory) {
  const std::unique_ptr<Frame> a = Make(3), b = Make(3);
  EXPECT_NE(ArenaOf(a), ArenaOf(b));
}

TEST_F(Frames, ReleaseOutgrownMemory) {
  std::unique_ptr<Frame> small = Make(1);
  const std::weak_ptr<Buffer> before = small->memory().arena;
  pool_.Give(std::move(small));
  const std::unique_ptr<Frame> large = Make(1000);
  EXPECT_TRUE(before.expired());
}

TEST(SharedFrames, ComputeTheValuesOfTheirOwnShapes) {
  Executor executor(ToyOps());
  Scope scope;
  const test::ToyProgram toy = TwoAdds();
  const std::vector<std::string> fetches = {"out"};
  for (const Dim rows : {1, 5, 2, 40, 3, 40, 1, 5}) {
    auto out = executor.Run(toy.program, scope, test::TwoFeeds(rows, 1, 10), fetches);
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    const Tensor& tensor = *(*out)[0].If<Tensor>();
    EXPECT_EQ(tensor.shape(), Shape({rows, 2}));
    for (Dim i = 0; i < tensor.count(); ++i) EXPECT_EQ(tensor.Data<float>()[i], 12);
  }
  EXPECT_EQ(executor.stats().specialised_count, 5);
}

}  // namespace
}  // namespace penstock::exec
