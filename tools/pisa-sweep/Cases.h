//===- Cases.h - Problems that a sweep runs ---------------------*- C++ -*-===//
//
// Part of the PISA project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PISA_TOOLS_PISA_SWEEP_CASES_H
#define PISA_TOOLS_PISA_SWEEP_CASES_H

#include "pisa/Harness/OpProblem.h"

#include <string>
#include <vector>

namespace pisa::sweep {

/// Problems that one compiled module serves: they differ in B, Tq, Tk and
/// lengths.
struct Group {
  std::vector<OpProblem> problems;
};

/// Every pair of values of any two of the lists of shapes (lengths, K, heads,
/// head dims, batch, C, g, types) at least once, but for pairs that no problem
/// of bounded memory can hold, whose number `infeasible` receives.
std::vector<Group> getPairwiseCases(int64_t &infeasible);

/// `count` random problems in groups of eight that share their parameters.
std::vector<Group> getRandomCases(uint64_t seed, int64_t count);

std::string describe(const OpProblem &problem);

} // namespace pisa::sweep

#endif // PISA_TOOLS_PISA_SWEEP_CASES_H
