// Programs to mutate, with values for what they need.
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
  std::map<std::string, Tensor, std::less<>> values;  // that suit; others follow the declarations
};

// Written here by hand, each op with inputs that suit it, random networks with their optimizers, and what
// small programs the corpus has. The same in each process.
std::vector<Subject> AllSubjects();

// The texts in subject_texts.cc.
std::vector<Subject> TextSubjects();

}  // namespace penstock::fuzz
