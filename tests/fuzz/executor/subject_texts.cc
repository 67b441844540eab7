// Programs of each kind, written by hand: dense, sequences, control flow, recurrent, optimizers, selected
// rows, tables.
#include "framework/text/parser.h"
#include "tests/fuzz/executor/subjects.h"

namespace penstock::fuzz {
namespace {

struct Text {
  const char* name;
  const char* main;
};

constexpr Text kTexts[] = {
    {"dense", R"(program
block 0 {
  data x : f32[?, 6]
  data label : i64[?, 1]
  param w : f32[6, 4]
  param b : f32[4]
  persist lr : f32[1]
  h : f32[?, 4] = mul(X=x, Y=w)
  s : f32[?, 4] = elementwise_add(X=h, Y=b) {axis=1}
  a : f32[?, 4] = relu(X=s)
  p : f32[?, 4] = softmax(X=a)
  (Y=c : f32[?, 1]) = cross_entropy(X=p, Label=label)
  loss : f32[1] = mean(X=c)
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0, dtype=5}
  (X@GRAD=c@GRAD : f32[?, 1]) = mean_grad(X=c, Out@GRAD=loss@GRAD)
  (X@GRAD=p@GRAD : f32[?, 4]) = cross_entropy_grad(X=p, Label=label, Y@GRAD=c@GRAD)
  (X@GRAD=a@GRAD : f32[?, 4]) = softmax_grad(Out=p, Out@GRAD=p@GRAD)
  (X@GRAD=s@GRAD : f32[?, 4]) = relu_grad(Out=a, Out@GRAD=a@GRAD)
  (X@GRAD=h@GRAD : f32[?, 4], Y@GRAD=b@GRAD : f32[4]) = elementwise_add_grad(X=h, Y=b,
    Out@GRAD=s@GRAD) {axis=1}
  (X@GRAD=[], Y@GRAD=w@GRAD : f32[6, 4]) = mul_grad(X=x, Y=w, Out@GRAD=h@GRAD)
  (ParamOut=w) = sgd(Param=w, Grad=w@GRAD, LearningRate=lr)
  (ParamOut=b) = sgd(Param=b, Grad=b@GRAD, LearningRate=lr)
}
)"},
    {"optimizers", R"(program
block 0 {
  data g : f32[4, 3]
  data small : f32[2]
  param w : f32[4, 3]
  persist m : f32[4, 3]
  persist v : f32[4, 3]
  persist n : f32[4, 3]
  persist b1 : f32[1]
  persist b2 : f32[1]
  persist lr : f32[1]
  persist few : f32[2]
  persist whole : i64[1]
  (ParamOut=w, Moment1Out=m, Moment2Out=v, Beta1PowOut=b1, Beta2PowOut=b2) = adam(Param=w, Grad=g,
    LearningRate=lr, Moment1=m, Moment2=v, Beta1Pow=b1, Beta2Pow=b2)
  (ParamOut=w, VelocityOut=m) = momentum(Param=w, Grad=g, Velocity=m, LearningRate=lr) {mu=0.9}
  (ParamOut=w, MomentOut=n) = adagrad(Param=w, Grad=g, Moment=n, LearningRate=lr)
  (ParamOut=w, MomentOut=m, InfNormOut=n) = adamax(Param=w, Grad=g, LearningRate=lr, Moment=m, InfNorm=n,
    Beta1Pow=b1)
  (ParamOut=w, SquaredAccumOut=m, LinearAccumOut=n) = ftrl(Param=w, SquaredAccumulator=m,
    LinearAccumulator=n, Grad=g, LearningRate=lr)
  (ParamOut=w, AvgSquaredGradOut=m, AvgSquaredUpdateOut=n) = adadelta(Param=w, Grad=g, AvgSquaredGrad=m,
    AvgSquaredUpdate=n)
  (ParamOut=w, Moment1Out=m, Moment2Out=v) = lamb(Param=w, Grad=g, LearningRate=lr, Moment1=m, Moment2=v,
    Beta1Pow=b1, Beta2Pow=b2) {weight_decay=0.01}
  few = scale(X=small) {scale=0.5}
  whole = fill_constant() {shape=[1l], value=2.0, dtype=3}
}
)"},
    {"late sizes", R"(program
block 0 {
  data x : f32[?, 2] lod=1
  data big : f32[40, 2]
  data zero : f32[1]
  var small : f32[?, 2]
  var padded : f32[?, ?, 2]
  pooled : f32[?, 2] = sequence_pool(X=x) {pooltype="SUM"}
  small = relu(X=pooled)
  twice : f32[?, 2] = scale(X=small) {scale=2.0}
  small = assign(X=big)
  more : f32[40, 2] = scale(X=small) {scale=3.0}
  (Out=padded, Length=lengths : i64[?]) = sequence_pad(X=x, PadValue=zero)
  sum : f32[?, 2] = reduce_sum(X=padded) {dim=[0]}
  total : f32[1] = mean(X=sum)
}
)"},
    {"sequences", R"(program
block 0 {
  data x : f32[?, 4] lod=1
  data ids : i64[?, 1] lod=1
  data two : f32[?, 2] lod=2
  param table : f32[20, 4]
  param filter : f32[12, 3]
  persist lr : f32[1]
  var e : f32[?, 4] lod=1
  var r : f32[?, 4] lod=1
  var c : f32[?, 3] lod=1
  var sm : f32[?, 3] lod=1
  e = lookup_table(W=table, Ids=ids) {is_sparse=true}
  (Y=r) = sequence_reverse(X=x)
  (Out=pool : f32[?, 4], MaxIndex=at : i32[?, 4]) = sequence_pool(X=e) {pooltype="MAX"}
  c = sequence_conv(X=x, Filter=filter) {contextLength=3, contextStart=-1, contextStride=1}
  sm = sequence_softmax(X=c)
  spread : f32[?, 4] = sequence_expand(X=pool, Y=ids) {ref_level=0}
  both : f32[?, 4] = sequence_concat(X=[x, x])
  deep : f32[?, 2] = sequence_pool(X=two) {pooltype="LAST"}
  loss : f32[1] = mean(X=pool)
  loss@GRAD : f32[1] = fill_constant() {shape=[1l], value=1.0, dtype=5}
  (X@GRAD=pool@GRAD : f32[?, 4]) = mean_grad(X=pool, Out@GRAD=loss@GRAD)
  (X@GRAD=e@GRAD : f32[?, 4]) = sequence_pool_grad(X=e, MaxIndex=at, Out@GRAD=pool@GRAD) {pooltype="MAX"}
  (W@GRAD=table@GRAD : rows<f32[20, 4]>) = lookup_table_grad(W=table, Ids=ids,
    Out@GRAD=e@GRAD) {is_sparse=true}
  (ParamOut=table) = sgd(Param=table, Grad=table@GRAD, LearningRate=lr)
}
)"},
    {"recurrent", R"(program
block 0 {
  data gates : f32[?, 12] lod=1
  data four : f32[?, 16] lod=1
  param w : f32[4, 12]
  param b : f32[1, 12]
  param u : f32[4, 16]
  param d : f32[1, 16]
  (Hidden=h : f32[?, 4], BatchGate=bg : f32[?, 12], BatchResetHiddenPrev=br : f32[?, 4],
    BatchHidden=bh : f32[?, 4]) = gru(Input=gates, Weight=w, Bias=b)
  (Hidden=lh : f32[?, 4], Cell=lc : f32[?, 4], BatchGate=lg : f32[?, 16], BatchCellPreAct=lp : f32[?,
    4]) = lstm(Input=four, Weight=u, Bias=d) {use_peepholes=false}
  last : f32[?, 4] = sequence_pool(X=h) {pooltype="LAST"}
  sum : f32[1] = mean(X=last)
  lsum : f32[1] = mean(X=lh)
}
)"},
    {"control flow", R"(program
block 0 {
  data x : f32[2, 3]
  data c : bool[1]
  var s : step_scopes
  var t : step_scopes
  var arr : array<f32[2, 3]>
  i : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  n : i64[1] = fill_constant() {shape=[1l], value=4.0, dtype=3}
  more : bool[1] = less_than(X=i, Y=n)
  y : f32[2, 3] = scale(X=x) {scale=2.0}
  arr = write_to_array(X=y, I=i)
  (Out=[i, more, y, arr], StepScopes=s) = while(X=[x, n, i, y, arr], Condition=more) {sub_block=^1}
  (Out=[y], Scope=t) = conditional_block(Cond=[c], Input=[x]) {sub_block=^2, is_scalar_condition=true}
  z : f32[2, 3] = scale(X=y) {scale=10.0}
  zero : i64[1] = fill_constant() {shape=[1l], value=0.0, dtype=3}
  first : f32[2, 3] = read_from_array(X=arr, I=zero)
  len : i64[1] = lod_array_length(X=arr)
  (Out=all : f32[?, 3], OutIndex=parts : i32[?]) = tensor_array_to_tensor(X=arr) {axis=0}
}
block 1 in 0 {
  h : f32[2, 3] = elementwise_add(X=y, Y=x)
  y = scale(X=h) {scale=0.5}
  i = increment(X=i) {step=1.0}
  arr = write_to_array(X=h, I=i)
  more = less_than(X=i, Y=n)
}
block 2 in 0 {
  h : f32[2, 3] = scale(X=x) {scale=3.0}
  y = elementwise_add(X=h, Y=x)
}
)"},
    {"rank table", R"(program
block 0 {
  data x : f32[?, 2] lod=1
  data mask : bool[?, 1]
  var table : rank_table
  var steps : array<f32[?, 2]>
  (Out=table) = lod_rank_table(X=x) {level=0}
  (Out=longest : i64[1]) = max_sequence_len(RankTable=table)
  (Out=steps) = lod_tensor_to_array(X=x, RankTable=table)
  i : i64[1] = fill_constant() {shape=[1l], value=1.0, dtype=3}
  one : f32[?, 2] = read_from_array(X=steps, I=i)
  fewer : f32[?, 2] = shrink_rnn_memory(X=one, I=i, RankTable=table)
  (Out=back : f32[?, 2]) = array_to_lod_tensor(X=steps, RankTable=table)
  (Out=sorted : f32[?, 2]) = reorder_lod_tensor_by_rank(X=x, RankTable=table)
  flat : f32[?, 2] = reshape2(X=x) {shape=[-1, 2]}
  (OutTrue=yes : f32[?, 2], OutFalse=no : f32[?, 2]) = split_lod_tensor(X=flat, Mask=mask) {level=0}
  (Out=merged : f32[?, 2]) = merge_lod_tensor(X=flat, Mask=mask, InTrue=yes, InFalse=no) {level=0}
}
)"},
    {"selected rows", R"(program
block 0 {
  data ids : i64[?, 1]
  param table : f32[20, 4]
  persist m : f32[20, 4]
  persist v : f32[20, 4]
  persist b1 : f32[1]
  persist b2 : f32[1]
  persist lr : f32[1]
  e : f32[?, 4] = lookup_table(W=table, Ids=ids) {is_sparse=true, padding_idx=2l}
  e@GRAD : f32[?, 4] = scale(X=e) {scale=0.5}
  (W@GRAD=g : rows<f32[20, 4]>) = lookup_table_grad(W=table, Ids=ids, Out@GRAD=e@GRAD) {is_sparse=true}
  k : rows<f32[20, 4]> = sum(X=[g, g])
  q : rows<f32[20, 4]> = scale(X=k) {scale=0.25}
  u : rows<f32[20, 4]> = merge_selected_rows(X=q)
  f : f32[?, 4] = get_tensor_from_selected_rows(X=u)
  c : rows<f32[20, 4]> = clip(X=u) {min=-0.1, max=0.1}
  dense : f32[20, 4] = scale(X=table) {scale=0.1}
  both : f32[20, 4] = sum(X=[dense, c])
  (ParamOut=table, Moment1Out=m, Moment2Out=v, Beta1PowOut=b1, Beta2PowOut=b2) = adam(Param=table, Grad=c,
    LearningRate=lr, Moment1=m, Moment2=v, Beta1Pow=b1, Beta2Pow=b2) {lazy_mode=true}
  (ParamOut=table) = sgd(Param=table, Grad=c, LearningRate=lr)
}
)"},
    {"tables", R"(program
block 0 {
  data ids : i64[?, 1]
  persist table : rows<f32[20, 4]>
  persist whole : f32[20, 4]
  persist lr : f32[1]
  (Out=[a : i64[?, 1], b : i64[?, 1]]) = split_ids(Ids=[ids])
  x : f32[?, 4] = lookup_table(W=whole, Ids=a)
  y : f32[?, 4] = lookup_table(W=whole, Ids=b)
  (Out=[e : f32[?, 4]]) = merge_ids(Ids=[ids], Rows=[a, b], X=[x, y])
  t : f32[?, 4] = lookup_sparse_table(W=table, Ids=ids) {auto_grown_table=true}
  (W@GRAD=g : rows<f32[20, 4]>) = lookup_table_grad(W=whole, Ids=ids, Out@GRAD=e) {is_sparse=true}
  (Out=[g0 : rows<f32[10, 4]>, g1 : rows<f32[10, 4]>]) = split_selected_rows(X=g) {height_sections=[10l,
    10l]}
  (ParamOut=table) = sgd(Param=table, Grad=g, LearningRate=lr)
  (ParamOut=whole) = sgd(Param=whole, Grad=g, LearningRate=lr)
}
)"},
    {"images", R"(program
block 0 {
  data x : f32[?, 2, 6, 6]
  data label : i64[?, 1]
  param k : f32[4, 2, 3, 3]
  param bias : f32[4]
  param scale : f32[4]
  persist mean : f32[4]
  persist var : f32[4]
  param w : f32[36, 3]
  (Output=c : f32[?, 4, 6, 6]) = conv2d(Input=x, Filter=k) {paddings=[1, 1], strides=[1, 1], dilations=[1,
    1], groups=1}
  (Y=n : f32[?, 4, 6, 6], MeanOut=mean, VarianceOut=var, SavedMean=sm : f32[4],
    SavedVariance=sv : f32[4]) = batch_norm(X=c, Scale=scale, Bias=bias, Mean=mean, Variance=var)
  r : f32[?, 4, 6, 6] = relu(X=n)
  p : f32[?, 4, 3, 3] = pool2d(X=r) {pooling_type="max", ksize=[2, 2], strides=[2, 2], paddings=[0, 0]}
  h : f32[?, 3] = mul(X=p, Y=w) {x_num_col_dims=1}
  (Softmax=s : f32[?, 3], Loss=l : f32[?, 1]) = softmax_with_cross_entropy(Logits=h, Label=label)
  (Out=top : f32[?, 1], Indices=at : i64[?, 1]) = top_k(X=s) {k=1}
  (Accuracy=acc : f32[1], Correct=right : i32[1], Total=all : i32[1]) = accuracy(Out=top, Indices=at,
    Label=label)
  loss : f32[1] = mean(X=l)
  (Out=d : f32[?, 3], Mask=dm : u8[?, 3]) = dropout(X=h) {dropout_prob=0.3,
    dropout_implementation="upscale_in_train"}
  (Y=ln : f32[?, 3], Mean=lm : f32[?], Variance=lv : f32[?]) = layer_norm(X=h) {begin_norm_axis=1}
  (Out=t : f32[3, ?], XShape=ts : f32[0]) = transpose2(X=h) {axis=[1, 0]}
  m : f32[?, ?] = matmul(X=h, Y=t)
}
)"},
    {"one name, many shapes", R"(program
block 0 {
  data x : f32[4, 6]
  var t : f32[4, 6]
  var u : f32[4, 6]
  t = scale(X=x) {scale=2.0}
  (Out=t, XShape=xs : f32[0]) = reshape2(X=t) {shape=[8, 3]}
  t = scale(X=t) {scale=2.0}
  u = cast(X=t) {in_dtype=5, out_dtype=3}
  u = cast(X=u) {in_dtype=3, out_dtype=6}
  u = concat(X=[u, u]) {axis=0}
  (Out=[a : f64[2, 3], t]) = split(X=u) {axis=0, sections=[2, 14]}
  y : f64[1] = mean(X=t)
  t = assign(X=y)
}
)"},
};

}  // namespace

std::vector<Subject> TextSubjects() {
  std::vector<Subject> subjects;
  for (const Text& text : kTexts) {
    Result<Program> program = ParseText(text.main, text.name);
    PENSTOCK_CHECK(program.ok(), program.status().ToString());
    subjects.push_back({text.name, Program(), *std::move(program), {}});
  }
  return subjects;
}

}  // namespace penstock::fuzz
