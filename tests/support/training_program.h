// Makes a simple training program: parameters w0000, w0001, ... in a chain of multiplications, each with its
// gradient and its sgd op, in the order in which minimize leaves them.
#pragma once

#include <utility>
#include <vector>

#include "framework/ir/program.h"

namespace penstock::test {

struct TrainingProgram {
  Program main, startup;
};

// One parameter for each shape, of rank 1 or more.
TrainingProgram MakeTrainingProgram(const std::vector<Shape>& shapes);

}  // namespace penstock::test
