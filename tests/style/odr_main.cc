// Runs nothing: the test is whether all libraries can be linked into one program (CMakeLists.txt).
int main() { return 0; }
