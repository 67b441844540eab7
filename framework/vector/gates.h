// What a step of an LSTM or a GRU computes beside its matrix products, forward and backward, one row per
// call. The formulas stand at the ops lstm, lstmp and gru.
//
// Sigmoid and tanh are exact to 4 ulp (math_inl.h); the sums and products add their roundings. Bytes are the
// same with AVX2 and AVX-512; with less, they differ within these errors. NaN and infinities propagate as the
// formulas say, and a function or a bound that receives NaN gives NaN.
#pragma once

#include <cstddef>

namespace penstock::vec {

// The numbers are those of gru_unit's attributes.
enum class GateFunction { kIdentity = 0, kSigmoid = 1, kTanh = 2, kRelu = 3 };

// What all rows of an LSTM have in common. A row of gates has four parts of `width` elements.
template <typename T>
struct LstmGates {
  std::size_t width = 0;
  GateFunction gate = GateFunction::kSigmoid, cell = GateFunction::kTanh, candidate = GateFunction::kTanh;
  bool bounds_sigmoids = true;  // whether the argument of a sigmoid is first brought into [-40, 13]
  T clip = 0;                   // the bound of the cell; 0: none
  const T* bias = nullptr;      // a row of gates; null: zeros
  // Weights from the cell to the input, forget and output gate, each `width` elements; null: none.
  const T* peepholes = nullptr;
  struct Parts {
    std::size_t candidate = 0, input = 1, forget = 2, output = 3;
  } parts;  // the place of each part in a row of gates
};

template <typename T>
struct LstmRow {
  T* gates;  // input, if has_product: the products; output: the activated gates
  bool has_product;
  const T* input;   // added to the products; may be null or `gates`
  const T* before;  // the previous cell; null: zeros
  T* cell;          // output; may be `before`
  T* active;        // output: the activated cell; may be null
  T* out;           // output
};
void LstmForward(const LstmGates<float>& gates, const LstmRow<float>& row);

template <typename T>
struct LstmGradRow {
  const T* gates;         // the activated gates
  const T* before;        // the previous cell; null: zeros
  const T* cell;          // read only if there are peepholes or a clip
  const T* active;        // the activated cell
  const T* dout;          // the gradient of the output
  const T* dout_again;    // added to it; may be null
  const T* dcell_direct;  // the gradient of the cell beside what later steps contribute; may be null
  T* dcell;               // input: what the next step contributes; output: for the previous step
  T* dgates;              // output; may be `gates`
  T* dpeepholes;          // the gradient of the peepholes is added to it; may be null
};
void LstmBackward(const LstmGates<float>& gates, const LstmGradRow<float>& row);

// What all rows of a GRU have in common. A row of gates has three parts of `width` elements: update, reset
// and candidate.
template <typename T>
struct GruGates {
  std::size_t width = 0;
  GateFunction gate = GateFunction::kSigmoid, candidate = GateFunction::kTanh;
  bool bounds_sigmoids = true;
  bool origin = false;  // out = u * before + (1 - u) * c; otherwise (1 - u) * before + u * c
  const T* bias = nullptr;
};

template <typename T>
struct GruRow {
  T* gates;  // input, if has_product: the products; output: the activated gates
  bool has_product;
  const T* input;   // added to the products; may be `gates`
  const T* before;  // the previous hidden state; null: zeros
  T* reset;         // output of GruReset: r * before
  T* out;           // output of GruOut
};
// Computes update and reset gate, and `reset`, whose product with the weights then is the candidate's.
void GruReset(const GruGates<float>& gates, const GruRow<float>& row);
// Computes the candidate and the output.
void GruOut(const GruGates<float>& gates, const GruRow<float>& row);

template <typename T>
struct GruGradRow {
  const T* gates;       // the activated gates
  const T* before;      // null: zeros
  const T* dout;        // the gradient of the output
  const T* dout_again;  // added to it; may be null or `dbefore`
  const T* dreset;      // the gradient of `reset`, which GruResetGrad reads
  T* dgates;            // output
  T* dbefore;           // output: the gradient of the previous hidden state, without the products of dgates
};
// Computes the update gate's and the candidate's part of dgates; the product of the latter with the weights
// is dreset.
void GruOutGrad(const GruGates<float>& gates, const GruGradRow<float>& row);
// Computes the reset gate's part of dgates, and adds to dbefore.
void GruResetGrad(const GruGates<float>& gates, const GruGradRow<float>& row);

// x = f(x) for each of `count` elements.
void Activate(GateFunction f, bool bounds_sigmoid, float* x, std::size_t count);
// d *= f'(x), given y = f(x)
void ActivateGrad(GateFunction f, const float* y, float* d, std::size_t count);

// sums[j] += rows[0][j] + rows[1][j] + ..., row after row, for rows of `width` elements.
void AddRowsTo(const float* rows, std::size_t count, std::size_t width, float* sums);

}  // namespace penstock::vec
