exports.total = () => 1;
