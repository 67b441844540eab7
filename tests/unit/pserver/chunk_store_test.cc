#include "executor/pserver/chunk_store.h"

#include <gtest/gtest.h>

#include "framework/ir/program.h"
#include "framework/tensor/chunk.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"

namespace penstock::test {
namespace {

TEST(ChunkStore, CutsIntoRowsOfAboutTheSizeAskedForWhereTheUpdateIsElementwise) {
  ToyJob job;
  job.servers = {"a:1"};
  job.params = {{.name = "w", .shape = {6, 4}, .server = 0, .optimizer = "adam"}};
  const Program program = job.Pserver(0);
  ServerFacts facts = ReadServer(SimOps(), program, *program.main().ops().back().op).value();
  Scope scope;
  job.Start(0, scope);
  const auto chunks = [&](std::size_t chunk_bytes) {
    const auto store = ChunkStore::Make(program, facts, scope, chunk_bytes).value();
    return std::pair(store->chunk_count(0), store->chunk_rows(0));
  };
  EXPECT_EQ(chunks(32), std::pair(std::size_t{3}, Dim{2}));
  EXPECT_EQ(chunks(70), std::pair(std::size_t{2}, Dim{4}));
  EXPECT_EQ(chunks(1), std::pair(std::size_t{6}, Dim{1}));  // a row is never cut
  EXPECT_EQ(chunks(kChunkBytes), std::pair(std::size_t{1}, Dim{6}));
  facts.params[0].elementwise = false;
  EXPECT_EQ(chunks(32), std::pair(std::size_t{1}, Dim{6}));
}

}  // namespace
}  // namespace penstock::test
