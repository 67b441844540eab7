// The dispatcher of the corpus's hashfix cases: each variable goes where Python 3.7's hash of its name
// points, with PYTHONHASHSEED=0.
#pragma once

#include "transpiler/plan/dispatcher.h"

namespace penstock::test {

plan::DispatcherFactory PythonHashDispatchers();

}  // namespace penstock::test
