// Joins the rows of a table from several pservers.
#pragma once

#include <vector>

#include "framework/tensor/variable.h"

namespace penstock::checkpoint {

// The rows of all, at least one, by ascending id; of equal ids both are there.
SelectedRows MergeRows(const std::vector<SelectedRows>& from);

}  // namespace penstock::checkpoint
