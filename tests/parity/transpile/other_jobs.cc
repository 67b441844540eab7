#include "tests/parity/transpile/other_jobs.h"

#include <functional>

#include "framework/base/strings.h"

namespace penstock::test {
namespace {

struct Way {
  const char* name;
  std::function<void(plan::TranspileConfig&)> set;
};

const std::vector<Way>& WaysWithPservers() {
  static const std::vector<Way> kWays = {
      {"sync", [](plan::TranspileConfig&) {}},
      {"geo", [](plan::TranspileConfig& job) { job.kind = plan::Kind::kGeo; }},
      {"async",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.sync_mode_field = false;
       }},
      {"async with dc_asgd",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.dc_asgd = true;
       }},
      {"async by the communicator",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.runtime_split_send_recv = true;
       }},
      {"communicator with dc_asgd",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.runtime_split_send_recv = job.dc_asgd = true;
       }},
      {"half_async",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.sync_mode_field = false;
         job.runtime_split_send_recv = job.half_async = true;
       }},
      {"half_async and completely_not_async",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.runtime_split_send_recv = job.half_async = job.completely_not_async = true;
       }},
      {"completely_not_async without the communicator",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.completely_not_async = true;
       }},
      {"completely_not_async",
       [](plan::TranspileConfig& job) {
         job.sync_mode_argument = false;
         job.runtime_split_send_recv = job.completely_not_async = true;
       }},
  };
  return kWays;
}

const std::vector<Way>& WaysWithoutPservers() {
  static const std::vector<Way> kWays = {
      {"nccl2", [](plan::TranspileConfig& job) { job.kind = plan::Kind::kNccl2; }},
      {"grad_allreduce", [](plan::TranspileConfig& job) { job.collective_mode = "grad_allreduce"; }},
      {"local_sgd", [](plan::TranspileConfig& job) { job.collective_mode = "local_sgd"; }},
      {"single_process_multi_thread",
       [](plan::TranspileConfig& job) { job.collective_mode = "single_process_multi_thread"; }},
  };
  return kWays;
}

plan::TranspileConfig Servers(int pservers) {
  plan::TranspileConfig job;
  job.trainers = pservers == 1 ? 1 : 3;
  job.trainer_ids = {job.trainers - 1};
  for (int i = 0; i < pservers; ++i) job.pservers.push_back(StrCat("127.0.0.1:", 7000 + i));
  job.min_block_size = 100;
  job.allow_small_blocks = true;
  job.slice_params = pservers != 3;
  return job;
}

constexpr int kSizes[] = {9, 1, 3};

OtherJob Make(const Way& way, int pservers) {
  OtherJob job{StrCat(way.name, " on ", pservers), Servers(pservers)};
  way.set(job.config);
  return job;
}

}  // namespace

std::vector<OtherJob> OtherJobs() {
  std::vector<OtherJob> jobs;
  for (const int pservers : kSizes) {
    for (const Way& way : WaysWithPservers()) jobs.push_back(Make(way, pservers));
  }
  for (const Way& way : WaysWithoutPservers()) {
    OtherJob job{way.name, {}};
    job.config.kind = plan::Kind::kCollective;
    job.config.trainers = 2;
    job.config.trainer_ids = {1};
    job.config.trainer_addresses = {"10.0.0.1:6174", "10.0.0.2:6174"};
    way.set(job.config);
    jobs.push_back(job);
  }
  return jobs;
}

std::vector<OtherJob> OtherJobsOf(std::size_t program) {
  const std::vector<Way>& ways = WaysWithPservers();
  constexpr std::size_t kEverySize = 2;  // sync and geo come first
  std::vector<OtherJob> jobs;
  for (const int pservers : kSizes) {
    for (std::size_t i = 0; i < kEverySize; ++i) jobs.push_back(Make(ways[i], pservers));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}}) {
    jobs.push_back(Make(ways[kEverySize + (program + size * 3) % (ways.size() - kEverySize)], kSizes[size]));
  }
  return jobs;
}

}  // namespace penstock::test
