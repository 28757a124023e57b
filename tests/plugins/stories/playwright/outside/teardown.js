module.exports = () => { throw new Error('the end of all'); };
