#include "transpiler/plan/conventions.h"

namespace penstock::plan {
namespace {

constexpr Conventions kOurs;
constexpr Conventions kFluid18s = {
    .senders_have_ids = false,
    .readers_follow_updates = false,
    .derives_from_received = false,
    .merges_rows_of_an_id = false,
    .barrier_names_all_tables = true,
    .one_request_per_table = true,
    .slices_start_as_rows = false,
    .updates_each_slice = false,
    .cuts_state_of_other_ops = false,
    .marks_ops_of_updates = false,
    .clips_unsent_rows = true,
    .schedules_by_need = false,
    .counts_by_bias = false,
    .counts_as_one_machine = false,
    .tables_keep_optimizer = false,
    .table_gradients_are_means = false,
    .marks_shards = false,
    .respects_earlier_rewriting = false,
    .requires_loss = false,
    .sums_sparsely = false,
    .each_user_waits = false,
    .step_ends_before_users = false,
    .snapshots_have_types = false,
};

}  // namespace

const Conventions& ConventionsOf(Dialect dialect) { return dialect == Dialect::kFluid18 ? kFluid18s : kOurs; }

}  // namespace penstock::plan
