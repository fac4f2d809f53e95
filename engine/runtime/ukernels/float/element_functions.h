// Functions of each element by itself over rows of floats, for one instruction
// set.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_ELEMENT_FUNCTIONS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_ELEMENT_FUNCTIONS_H_

#include <cstdint>

namespace optfarm::runtime {

// `count` values, or one that stands for all of them.
struct ElementRow {
  const float* values = nullptr;
  bool moves = true;
};

// Writes `count` values; `out` may be one of the operands. A function of one
// operand takes the first.
using ElementFunction = void (*)(const ElementRow& a, const ElementRow& b,
                                 int64_t count, float* out);

struct ElementFunctions {
  ElementFunction add;
  ElementFunction subtract;
  ElementFunction multiply;
  ElementFunction divide;
  ElementFunction maximum;
  ElementFunction minimum;
  ElementFunction negate;
  ElementFunction square;
  ElementFunction cube;
  ElementFunction relu;
  ElementFunction relu6;
  ElementFunction sigmoid;
  ElementFunction tanh;
  ElementFunction erf;
  // x Phi(x), Phi being the normal distribution; and its usual approximation.
  ElementFunction gelu;
  ElementFunction gelu_by_tanh;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_ELEMENT_FUNCTIONS_H_
