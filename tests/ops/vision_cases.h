// The cases of operators/vision and operators/detection.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/ops/gradient_case.h"

namespace penstock::test {

std::vector<GradientCase> VisionGradientCases();
std::vector<GradientCase> DetectionGradientCases();
std::vector<PlainCase> DetectionPlainCases();

// An op with a documented result for NaN, inputs that contain NaN, and some of the expected outputs.
struct NanCase {
  Op op;
  Tensors inputs;
  std::map<std::string, std::vector<double>> outputs;
};
std::vector<NanCase> VisionNanCases();

}  // namespace penstock::test
