// The original programs for mutation, with values of their variables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/tensor/variable.h"

namespace penstock::fuzz {

struct Subject {
  std::string name;
  Program startup, main;
  std::map<std::string, Tensor, std::less<>> values;  // valid; others are made by declaration
};

// All subjects, the same in each process: programs written by hand, each op with valid inputs, random
// networks with their optimizers, and the small programs of the corpus.
std::vector<Subject> AllSubjects();

// The texts in subject_texts.cc.
std::vector<Subject> TextSubjects();

}  // namespace penstock::fuzz
