// Transpiles two programs that the verifier accepts, or gets an error that blames the input. The input is
// text:
//
//   21030           digits and letters that choose the job, in the first line (JobOf)
//   program ...     the main program
//   -- startup      on a separate line
//   program ...     the startup program
#include "framework/text/parser.h"
#include "framework/verify/verifier.h"
#include "framework/wire/wire.h"
#include "operators/all_ops.h"
#include "tests/fuzz/targets/target.h"
#include "transpiler/pipeline/check_role_set.h"

namespace penstock::fuzz {
namespace {

// Any bytes select a job; missing bytes count as '0'.
plan::TranspileConfig JobOf(std::string_view line) {
  const auto choice = [&line](std::size_t at) {
    return at < line.size() ? static_cast<unsigned char>(line[at]) - unsigned{'0'} : 0U;
  };
  plan::TranspileConfig config;
  config.trainers = 1 + static_cast<int>(choice(0) % 4);
  config.trainer_ids = {0};
  for (unsigned i = 0; i <= choice(1) % 5; ++i) config.pservers.push_back(StrCat("h", i, ":1"));
  config.dialect = choice(2) % 2 == 0 ? plan::Dialect::kDefault : plan::Dialect::kFluid18;
  config.slice_params = choice(2) % 4 < 2;
  config.allow_small_blocks = true;
  config.min_block_size = 1 + static_cast<std::int64_t>(choice(3) % 64) * 8;
  const unsigned mode = choice(4) % 10;
  if (mode == 0) return config;  // synchronous
  if (mode == 9) {
    config.kind = plan::Kind::kGeo;
    return config;
  }
  config.sync_mode_field = config.sync_mode_argument = false;
  config.runtime_split_send_recv = mode % 4 != 1;
  config.half_async = mode % 4 >= 3 || mode % 4 == 0;
  config.completely_not_async = mode % 4 == 0;
  config.dc_asgd = mode > 4 && !config.completely_not_async;
  return config;
}

void Transpiles(const Program& main, const Program& startup, const plan::TranspileConfig& config) {
  const Result<RoleSet> roles = Transpile(AllOps(), main, startup, config);
  if (!roles.ok()) {
    MustBeTheInputsFault(roles.status());
    return;
  }
  const check::RoleFiles files = FilesOf(*roles);
  for (const check::RoleProgram* role : files.All()) Use(role->program);
  for (const check::Finding& finding : check::CheckRoles(files, AllOps()).findings)
    PENSTOCK_CHECK(!finding.message.empty(), finding.id);
}

}  // namespace

void Try(std::string_view input) {
  constexpr std::string_view kStartup = "\n-- startup\n";
  const std::size_t job = input.find('\n'), startup = input.find(kStartup);
  if (startup == std::string_view::npos || job >= startup) return;
  const Result<Program> main_program = ParseText(input.substr(job + 1, startup - job), "main");
  const Result<Program> startup_program = ParseText(input.substr(startup + kStartup.size()), "startup");
  if (!main_program.ok() || !startup_program.ok()) return;
  for (const Program* program : {&*main_program, &*startup_program}) {
    if (!VerifyProgram(*program, {.ops = &AllOps()}).ok()) return;
  }
  Transpiles(*main_program, *startup_program, JobOf(input.substr(0, job)));
}

}  // namespace penstock::fuzz
