// Gives each temporary of a plan its place in the arena, and finds which temporaries are rows of others.
#pragma once

#include "executor/graph/sent_values.h"
#include "executor/graph/specialise.h"

namespace penstock::exec {

// Sets views, places, arena_bytes, and `view` and `place` of each output; everything else of the plan is
// complete. `in_place`: outputs take over the memory of inputs (in_place.h).
void PlaceTemporaries(Specialisation& plan, const SentValues& sent, bool in_place);

}  // namespace penstock::exec
