// Several functions of elements as one step: the values between them are rows
// that stay in the level-1 cache.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_ELEMENT_PROGRAM_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_ELEMENT_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/plan/step_chain.h"
#include "engine/runtime/ukernels/float/element_functions.h"

namespace optfarm::runtime {

struct ElementInstruction {
  enum class Kind : uint8_t {
    kFunction,
    // One of `parts` equal parts of the last dimension (Split).
    kPart,
    // Values side by side along the last dimension (ConcatV2).
    kJoin,
  };
  Kind kind = Kind::kFunction;
  ElementFunction run = nullptr;
  // Numbers of values.
  std::vector<int> operands;
  int result = 0;
  int part = 0;
  int parts = 1;
  // Of kPart and kJoin, as the graph gives it.
  int64_t axis = -1;
};

// Values are numbered: those of the inputs first.
struct ElementProgram {
  int inputs = 0;
  int values = 0;
  std::vector<ElementInstruction> instructions;
  // Values that are given out.
  std::vector<int> outputs;
};

// A kernel whose first inputs are those of the program; others are what parts
// of the chain wait for. Serves floats of one shape, along with single rows,
// single columns and single numbers; all else, and dead inputs, are the
// chain's.
std::unique_ptr<Kernel> MakeElementKernel(const ElementProgram& program,
                                          StepChain chain);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_ELEMENT_PROGRAM_H_
