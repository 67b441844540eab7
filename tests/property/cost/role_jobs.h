// Jobs for tests of the cost model: the corpus's folders of role programs, and random transpiled jobs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operators/all_ops.h"
#include "tests/support/corpus.h"
#include "tests/support/random_network.h"
#include "tests/support/training_program.h"
#include "tools/case/role_files.h"
#include "transpiler/cost/job.h"
#include "transpiler/pipeline/transpile.h"

namespace penstock::test {

struct CostedJob {
  std::string name;
  std::vector<Program> trainers, startups, pservers;
  std::optional<plan::PlacementPlan> plan;  // only of a job that we transpiled

  Result<cost::Job> Read() const {
    cost::JobPrograms programs;
    for (const Program& one : trainers) programs.trainers.push_back({"trainer", &one});
    for (const Program& one : startups) programs.trainer_startups.push_back({"startup", &one});
    for (const Program& one : pservers) programs.pservers.push_back({"pserver", &one});
    return cost::ReadJob(AllOps(), programs);
  }
};

// Whether all pservers of the case exist. The selection in the tree contains some cases only in part.
inline bool HasAllPservers(const std::filesystem::path& folder, const CostedJob& job) {
  if (!CorpusFolder().empty()) return true;
  const auto written = nlohmann::json::parse(BytesOf((folder / "case.json").string()));
  return written["config"].value("pservers", 0) == static_cast<int>(job.pservers.size());
}

// Every case with a trainer, and with a pserver or ranks.
inline std::vector<CostedJob> CorpusJobs() {
  namespace fs = std::filesystem;
  std::vector<CostedJob> jobs;
  for (const auto& entry : fs::directory_iterator(fs::path(CorpusOrSelection()) / "open" / "cases")) {
    const Result<check::RoleFiles> files = tools::ReadRoleFiles(entry.path().string());
    if (!files.ok() && files.status().id() == "E-roles-missing") continue;  // Fluid made no trainer
    // Partial cases of the selection have no startup programs either.
    if (!files.ok() && files.status().id() == "E-roles-startup" && CorpusFolder().empty()) continue;
    PENSTOCK_CHECK(files.ok(), files.status().ToString());
    CostedJob job{.name = entry.path().filename().string()};
    for (const check::RoleProgram& one : files->trainers) job.trainers.push_back(one.program);
    for (const check::RoleProgram& one : files->trainer_startups) job.startups.push_back(one.program);
    for (const check::RoleProgram& one : files->pservers) job.pservers.push_back(one.program);
    const bool ranks =
        job.name.find("@nccl2") != std::string::npos || job.name.find("@coll") != std::string::npos;
    if (ranks || (!job.pservers.empty() && HasAllPservers(entry.path(), job))) jobs.push_back(std::move(job));
  }
  return jobs;
}

inline CostedJob RandomCostedJob(unsigned seed) {
  Draw draw(seed);
  std::vector<Shape> shapes(static_cast<std::size_t>(draw.Between(1, 10)));
  for (Shape& shape : shapes) {
    shape = draw.Between(0, 1) == 0 ? Shape{draw.Between(1, 60000)}
                                    : Shape{draw.Between(1, 400), draw.Between(1, 300)};
  }
  const TrainingProgram source = MakeTrainingProgram(shapes);
  plan::TranspileConfig config;
  config.trainers = draw.Between(1, 5);
  config.trainer_ids.clear();
  for (int i = 0; i < draw.Between(1, config.trainers); ++i) config.trainer_ids.push_back(i);
  config.slice_params = draw.Between(0, 3) > 0;
  config.min_block_size = draw.Between(1, 20000);
  config.allow_small_blocks = true;
  const int pservers = draw.Between(1, 6);
  for (int i = 0; i < pservers; ++i) config.pservers.push_back(StrCat("10.0.0.", i, ":6174"));
  const Result<RoleSet> set = Transpile(AllOps(), source.main, source.startup, config);
  PENSTOCK_CHECK(set.ok(), set.status().ToString());
  CostedJob job{.name = StrCat("seed ", seed)};
  for (const TrainerPrograms& role : set->trainers) {
    job.trainers.push_back(role.main);
    job.startups.push_back(role.startup);
  }
  for (const PserverPrograms& role : set->pservers) job.pservers.push_back(role.main);
  job.plan = set->plan;
  return job;
}

}  // namespace penstock::test
