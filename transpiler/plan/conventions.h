// How role programs are written where Fluid 1.8's differ from ours, one decision a member. A pass reads the
// decision and knows no dialect. tests/parity/DIFFERENCES.md gives the reason for each of ours.
#pragma once

#include "transpiler/plan/config.h"

namespace penstock::plan {

// The defaults are ours; a comment says what Fluid 1.8 does.
struct Conventions {
  // Trainers.
  bool senders_have_ids = true;  // trainer_id of what a trainer sends; Fluid: 0
  bool readers_follow_updates =
      true;  // ops that read a parameter run behind its recv; Fluid: where they stand
  bool derives_from_received = true;  // startup ops that compute from parameters run again after the recv
  bool merges_rows_of_an_id = true;   // of a table's complete gradient; Fluid: of its first version, unmerged
  bool barrier_names_all_tables = false;  // also those whose send no op announces
  bool one_request_per_table = false;     // for all its lookups, declared like the first

  // Pservers.
  bool slices_start_as_rows = true;     // with the values of these rows in the whole; Fluid: like a whole
  bool updates_each_slice = true;       // Fluid: the first of a parameter's slices on a pserver
  bool cuts_state_of_other_ops = true;  // such as averages of values; Fluid: each pserver has the whole
  bool marks_ops_of_updates = true;     // role optimize for what an update needs of the forward pass
  bool clips_unsent_rows = false;       // a temporary computed from rows keeps the height of the whole
  bool schedules_by_need = true;        // a pserver has the schedule ops of its updates; Fluid: all
  bool counts_by_bias = true;           // a scale op that adds to its input is a counter too
  bool counts_as_one_machine = true;  // servers' step counters start, in sum, as one machine's; Fluid: 1 each
  bool tables_keep_optimizer = true;  // Fluid: sgd, without regularizer
  bool table_gradients_are_means = true;  // over trainers; Fluid: sums
  bool marks_shards = true;               // is_distributed

  // Ranks.
  bool respects_earlier_rewriting = true;  // what ranks exchange already is left alone
  bool requires_loss = true;               // an op that begins the backward pass
  bool sums_sparsely = true;               // what dgc has selected
  bool each_user_waits = true;             // for a gradient in flight; Fluid: the first optimizer, for all
  bool step_ends_before_users = true;  // of local SGD, before ops that use parameters; Fluid: with the block
  bool snapshots_have_types = true;    // Fluid: bool, which its inference gives to the parameter too
};

const Conventions& ConventionsOf(Dialect dialect);

}  // namespace penstock::plan
