// property_transpile: proves random jobs.
//
//   property_transpile                            500 jobs, as in the quick tests
//   property_transpile --count 10000 --seed 501   10,000 jobs, from seed 501 on
//   property_transpile --count 1 --seed 37        the job that a failure named
//   property_transpile --digests                  prints only "seed digest" lines, to compare processes
#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tests/property/transpile/random_job.h"

DEFINE_int32(count, 500, "how many jobs");
DEFINE_int32(seed, 1, "of the first job; each next one has the next number");
DEFINE_bool(digests, false, "print what each job's programs hash to, and test nothing");

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_count < 1) {
    std::cerr << "property_transpile: --count must be at least 1\n";
    return 2;
  }
  if (!FLAGS_digests) return RUN_ALL_TESTS();
  for (int i = 0; i < FLAGS_count; ++i) {
    const auto seed = static_cast<std::uint64_t>(FLAGS_seed) + static_cast<std::uint64_t>(i);
    std::cout << std::dec << seed << ' ' << std::hex
              << penstock::test::Prove(penstock::test::MakeRandomJob(seed)).digest << '\n';
  }
  return 0;
}
